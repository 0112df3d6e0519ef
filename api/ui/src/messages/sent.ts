// Recognizes that this tab has sent a message. Other messages of the reader come from other tabs, or have waited.
import type { Chat } from "../chat/chat";

type Sending = Pick<Chat, "unsent" | "posting">;

/** Whether a message has left between two states of the chat, as a question or beside an answer. */
export function hasSent(before: Sending, now: Sending): boolean {
  if (isUnderway(now) && !isUnderway(before)) return true;
  return now.posting.some(({ id }) => !before.posting.some((message) => message.id === id));
}

/** Another answer to an earlier message is no message. */
function isUnderway({ unsent }: Sending): boolean {
  return unsent?.isUnderway === true && unsent.text !== undefined;
}
