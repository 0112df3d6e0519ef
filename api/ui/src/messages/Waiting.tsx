// Shows a message that no run has read. Until then, its writer can take it back.
import type { Chat, WaitingMessage } from "../chat/chat";
import { words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { showToast } from "../shell/controls/toasts";
import { LongText } from "./LongText";

type Props = {
  message: WaitingMessage;
  takeBack: Chat["takeBack"];
  onTakenBack: (text: string) => void;
};

export function Waiting({ message, takeBack, onTakenBack }: Props) {
  // A run may read the message at any time.
  const button = useRefocus<HTMLButtonElement>(messageField);
  const take = async () => {
    try {
      const text = await takeBack(message);
      if (text === undefined) showToast(words.message.waiting.tooLate);
      else onTakenBack(text);
    } catch {
      showToast(words.message.waiting.failed);
    }
  };
  return (
    <article className="message user-message waiting" aria-label={words.message.waiting.name} data-id={message.id}>
      <div className="bubble">
        <LongText text={message.text} />
      </div>
      <p className="card-hint">
        {words.message.waiting[message.mode]}{" "}
        <button type="button" className="quiet-button" ref={button} onClick={() => void take()}>
          {words.message.waiting.takeBack}
        </button>
      </p>
    </article>
  );
}
