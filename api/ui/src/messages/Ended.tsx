// This quiet line under an incomplete answer says that a reader stopped it, that the model cut it off, or that it broke
// off.
import { type ChatMessage, cutOffBy } from "../chat/message";
import { words } from "../i18n";

type Props = {
  message: ChatMessage;
  isNewest: boolean;
  isLive: boolean;
  /** Asks for the rest. */
  goOn: () => void;
};

export function Ended({ message, isNewest, isLive, goOn }: Props) {
  const status = message.metadata?.status;
  if (isLive) return undefined;
  if (status === "cancelled") return <div className="ended">{words.message.stopped}</div>;
  const cause = cutOffBy(message);
  if (cause) {
    return (
      <div className="ended">
        {words.message.cutOff[cause]}
        {isNewest && (
          <button type="button" className="quiet-button" onClick={goOn}>
            {words.message.goOn}
          </button>
        )}
      </div>
    );
  }
  // Below the newest answer, a card gives the reason and offers a retry.
  if (status === "failed" && !isNewest) return <div className="ended">{words.message.brokeOff}</div>;
  return undefined;
}
