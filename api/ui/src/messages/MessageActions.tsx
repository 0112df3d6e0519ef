// The actions of an answer: the reader copies it, repeats it, forks a conversation from it, or shows another version.
import { useState } from "react";

import { type ChatMessage, textOf } from "../chat/message";
import { words } from "../i18n";
import { messageField } from "../refocus";
import { CopyButton } from "./CopyButton";
import { Icon, Spinner } from "./icons";
import { SentAt } from "./SentAt";
import type { Actions } from "./useActions";
import { VersionSwitch } from "./VersionSwitch";

export function MessageActions({ message, actions }: { message: ChatMessage; actions: Actions }) {
  const [fork, setFork] = useState<"idle" | "busy" | "failed">("idle");
  const onFork = async () => {
    if (fork === "busy") return;
    setFork("busy");
    try {
      await actions.fork(message);
      setFork("idle");
    } catch {
      setFork("failed");
    }
  };
  const onRegenerate = () => {
    // This answer disappears, and its button with it.
    messageField()?.focus({ preventScroll: true });
    actions.regenerate(message.id);
  };
  const forkLabel = fork === "failed" ? words.message.forkFailed : words.message.fork;
  return (
    <div className="actions" role="group" aria-label={words.message.actions}>
      <CopyButton text={() => textOf(message)} label={words.message.copy} />
      <button type="button" className="icon-button only-idle" aria-label={words.message.regenerate} title={words.message.regenerate} onClick={onRegenerate}>
        <Icon name="again" />
      </button>
      <button type="button" className="icon-button only-idle" aria-label={forkLabel} title={forkLabel} aria-disabled={fork === "busy"} onClick={() => void onFork()}>
        {fork === "busy" ? <Spinner /> : <Icon name={fork === "failed" ? "cross" : "branch"} />}
      </button>
      <VersionSwitch message={message} restore={actions.restore} />
      <SentAt message={message} />
    </div>
  );
}
