// Shows a message that the server does not have yet, or that no run has read. Until then, its writer can take it back.
import { useRef } from "react";

import type { Posting, WaitingMessage } from "../chat/chat";
import { words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { showToast } from "../shell/controls/toasts";
import { later } from "../later";
import { LongText } from "./LongText";

const MessageFiles = later(async () => (await import("../files/MessageFiles")).MessageFiles);

type Props<Message> = {
  message: Message;
  hint: string;
  takeBack: (message: Message) => Promise<Message | undefined>;
  onTakenBack: (message: Message) => void;
};

export function Waiting<Message extends WaitingMessage | Posting>({ message, hint, takeBack, onTakenBack }: Props<Message>) {
  // A run may read the message at any time.
  const button = useRefocus<HTMLButtonElement>(messageField);
  const isTaking = useRef(false);
  const take = async () => {
    // The second click of a double click asks for nothing more.
    if (isTaking.current) return;
    isTaking.current = true;
    try {
      const taken = await takeBack(message);
      if (taken === undefined) showToast(words.message.waiting.tooLate);
      else onTakenBack(taken);
    } catch {
      showToast(words.message.waiting.failed);
    }
    isTaking.current = false;
  };
  return (
    <article className="message user-message waiting" aria-label={words.message.waiting.name} data-id={message.id}>
      {message.files && <MessageFiles files={message.files} />}
      {message.text !== "" && (
        <div className="bubble">
          <LongText text={message.text} />
        </div>
      )}
      <p className="card-hint">
        {hint}{" "}
        <button type="button" className="quiet-button" ref={button} onClick={() => void take()}>
          {words.message.waiting.takeBack}
        </button>
      </p>
    </article>
  );
}
