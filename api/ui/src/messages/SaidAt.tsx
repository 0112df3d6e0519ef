// When a message was said.
import type { ChatMessage } from "../chat/message";
import { language, words } from "../i18n";
import { fullTime, shortTime } from "./time";

export function SaidAt({ message }: { message: ChatMessage }) {
  const at = message.metadata?.createdAt;
  if (!at) return undefined;
  const date = new Date(at);
  return (
    <time className="said-at" dateTime={at} title={fullTime(date, language)}>
      {shortTime(date, new Date(), language, words.message.yesterday)}
    </time>
  );
}
