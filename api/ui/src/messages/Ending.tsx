// What stands behind the newest message: that something is to come, is being made again, or has gone wrong.
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
  // What could not be sent has no answer: the newest is another one's.
  const isPartSaid = chat.failed !== "sending" && newest?.role === "assistant" && textOf(newest) !== "";
  return (
    <>
      {/* As an answer that has nothing to show yet, so that nothing jumps when it comes. */}
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
      {problem && !isAnswering && <Trouble problem={problem} isUnsent={chat.failed === "sending"} isPartSaid={isPartSaid} onRetry={chat.retry} />}
    </>
  );
}

/** So long a reader needs to notice and read a line. */
const SEEN_MS = 2_000;

/** Keeps what goes away sooner than anybody could have read it. */
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
