// Shows the time of a message: its age to the eye, the exact time in the tooltip and to a screen reader.
import type { ChatMessage } from "../chat/message";
import { locale, words } from "../i18n";
import { agoTime, fullTime } from "./time";
import { useNow } from "./useNow";

export function SentAt({ message }: { message: ChatMessage }) {
  return <Moment at={message.metadata?.createdAt} />;
}

/** `at` is in RFC 3339. */
export function Moment({ at }: { at?: string }) {
  const now = useNow();
  if (!at) return undefined;
  const date = new Date(at);
  const full = fullTime(date, locale);
  return (
    <time className="sent-at" dateTime={at} title={full}>
      <span aria-hidden="true">{agoTime(date, now, locale, words.message)}</span>
      <span className="unseen">{full}</span>
    </time>
  );
}
