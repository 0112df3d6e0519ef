// When a message was said.
import type { ChatMessage } from "../chat/message";
import { language, words } from "../i18n";
import { fullTime, shortTime } from "./time";

/** As the reader's country writes it, in the language of the page. */
const locale = navigator.languages.find((tag) => tag.startsWith(language)) ?? language;

export function SaidAt({ message }: { message: ChatMessage }) {
  return <Moment at={message.metadata?.createdAt} />;
}

/** `at` as RFC 3339. */
export function Moment({ at }: { at?: string }) {
  if (!at) return undefined;
  const date = new Date(at);
  return (
    <time className="said-at" dateTime={at} title={fullTime(date, locale)}>
      {shortTime(date, new Date(), locale, words.message.yesterday)}
    </time>
  );
}
