// This line says that the page is reconnecting, and whether a message waits for that.
import type { Chat } from "../chat/chat";
import { isNotSent } from "../chat/state";
import { inSentences, words } from "../i18n";
import { durationIn } from "./duration";
import { Spinner } from "./icons";
import { useSecondsUntil } from "./useSecondsUntil";

export function Connection({ chat }: { chat: Chat }) {
  const left = useSecondsUntil(chat.nextTryAt);
  const line = isNotSent(chat) ? words.list.notSent : chat.nextTryAt ? words.list.away : words.list.reconnecting;
  return (
    <p className="going-on">
      <Spinner />
      <span>{inSentences([line, left > 0 && words.list.nextTry(durationIn(words.duration, left * 1_000))])}</span>
      {left > 0 && (
        <button type="button" className="quiet-button" onClick={chat.tryNow}>
          {words.list.tryNow}
        </button>
      )}
    </p>
  );
}
