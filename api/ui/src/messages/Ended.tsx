// One quiet line under an answer that is not whole: that somebody stopped it, or that it broke off.
import type { ChatMessage } from "../chat/message";
import { words } from "../i18n";

type Props = { message: ChatMessage; isNewest: boolean; isLive: boolean };

export function Ended({ message, isNewest, isLive }: Props) {
  const status = message.metadata?.status;
  if (isLive) return undefined;
  if (status === "cancelled") return <div className="ended">{words.message.stopped}</div>;
  // Of the newest, a card says why, and offers the way on.
  if (status === "failed" && !isNewest) return <div className="ended">{words.message.brokeOff}</div>;
  return undefined;
}
