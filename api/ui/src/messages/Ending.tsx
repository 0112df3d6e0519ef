// This component follows the newest message: it says that the run works, that the page reconnects, or that an operation
// has failed.
import { useEffect, useState } from "react";

import type { Chat } from "../chat/chat";
import { textOf } from "../chat/message";
import { isNotSent } from "../chat/state";
import { words } from "../i18n";
import { Working } from "./Activity";
import { Connection } from "./Connection";
import { Spinner } from "./icons";
import { Trouble } from "./Trouble";

export function Ending({ chat }: { chat: Chat }) {
  const { progress, problem } = chat;
  const retrying = useSeen(chat.retrying);
  const newest = chat.messages.at(-1);
  if (progress === "loading" && !newest) {
    return (
      <div className="loading" role="status">
        <span className="unseen">{words.list.loading}</span>
      </div>
    );
  }
  const isAnswering = progress === "submitted" || progress === "streaming";
  // An unsent message has no answer: the newest answer belongs to another message.
  const isPartSaid = chat.failed !== "sending" && newest?.role === "assistant" && textOf(newest) !== "";
  const isCut = chat.failed === "run" && problem?.code === "limit_exceeded" && newest?.role === "assistant";
  return (
    <>
      {/* This looks like an empty answer, so that the page does not jump when the answer arrives. */}
      {isAnswering && !isNotSent(chat) && newest?.role !== "assistant" && (
        <div className="message answer">
          <Working />
        </div>
      )}
      {retrying && (
        <p className="going-on">
          <Spinner />
          {words.list.retrying(retrying.attempt, retrying.of)}
        </p>
      )}
      {chat.isReconnecting && <Connection chat={chat} />}
      {problem && !isAnswering && <Trouble problem={problem} isUnsent={chat.failed === "sending"} isPartSaid={isPartSaid} onRetry={chat.retry} onContinue={isCut ? () => chat.send(words.message.goOnText) : undefined} />}
    </>
  );
}

/** A reader needs this long to notice and read a line. */
const SEEN_MS = 2_000;

/** Keeps a short-lived value long enough for a reader. */
function useSeen<T>(now: T | undefined): T | undefined {
  const [seen, setSeen] = useState<{ what: T; since: number }>();
  useEffect(() => {
    if (now !== undefined) return setSeen((before) => (before?.what === now ? before : { what: now, since: performance.now() }));
    if (!seen) return;
    const timer = setTimeout(() => setSeen(undefined), seen.since + SEEN_MS - performance.now());
    return () => clearTimeout(timer);
  }, [now, seen]);
  return now ?? seen?.what;
}
