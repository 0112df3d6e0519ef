// Shows a message that no run has read. Until then, its writer can take it back.
import type { Chat, WaitingMessage } from "../chat/chat";
import { words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { showToast } from "../shell/controls/toasts";
import { later } from "../later";
import { LongText } from "./LongText";

const MessageFiles = later(async () => (await import("../files/MessageFiles")).MessageFiles);

type Props = {
  message: WaitingMessage;
  takeBack: Chat["takeBack"];
  onTakenBack: (message: WaitingMessage) => void;
};

export function Waiting({ message, takeBack, onTakenBack }: Props) {
  // A run may read the message at any time.
  const button = useRefocus<HTMLButtonElement>(messageField);
  const take = async () => {
    try {
      const taken = await takeBack(message);
      if (taken === undefined) showToast(words.message.waiting.tooLate);
      else onTakenBack(taken);
    } catch {
      showToast(words.message.waiting.failed);
    }
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
        {words.message.waiting[message.mode]}{" "}
        <button type="button" className="quiet-button" ref={button} onClick={() => void take()}>
          {words.message.waiting.takeBack}
        </button>
      </p>
    </article>
  );
}
