// This file reads texts from a conversation, to copy or to name it.
import { filesOf } from "../../chat/files";
import { type ChatMessage, textOf } from "../../chat/message";

/** Returns the newest answer that has text. */
export function lastAnswer(messages: ChatMessage[]): string | undefined {
  const answer = messages.findLast((message) => message.role === "assistant" && textOf(message) !== "");
  return answer && textOf(answer);
}

export function firstQuestion(messages: ChatMessage[]): string | undefined {
  const question = messages.find((message) => message.role === "user");
  return question && (textOf(question) || filesOf(question)[0]?.name);
}
