// What stands behind the newest message: that something is to come, is being made again, or has gone wrong.
import type { Chat } from "../chat/chat";
import { words } from "../i18n";
import { Working } from "./Activity";
import { Spinner } from "./icons";
import { Trouble } from "./Trouble";

export function Ending({ chat }: { chat: Chat }) {
  const { progress, problem, retrying } = chat;
  const newest = chat.messages.at(-1);
  if (progress === "loading" && !newest) {
    return (
      <div className="loading" role="status">
        <span className="unseen">{words.list.loading}</span>
      </div>
    );
  }
  const isAnswering = progress === "submitted" || progress === "streaming";
  return (
    <>
      {/* As an answer that has nothing to show yet, so that nothing jumps when it comes. */}
      {isAnswering && newest?.role !== "assistant" && (
        <div className="message answer">
          <Working />
        </div>
      )}
      {retrying && (
        <p className="going-on">
          <Spinner />
          {words.list.retrying(retrying.attempt, retrying.of)}
        </p>
      )}
      {chat.isReconnecting && (
        <p className="going-on">
          <Spinner />
          {words.list.reconnecting}
        </p>
      )}
      {problem && !isAnswering && <Trouble problem={problem} hasAnswer={newest?.role === "assistant"} onRetry={chat.retry} />}
    </>
  );
}
