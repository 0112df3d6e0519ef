// What was said in a conversation, as somebody would copy it or call it by.
import { type ChatMessage, textOf } from "../chat/message";

/** The newest answer that says something. */
export function lastAnswer(messages: ChatMessage[]): string | undefined {
  const answer = messages.findLast((message) => message.role === "assistant" && textOf(message) !== "");
  return answer && textOf(answer);
}

export function firstQuestion(messages: ChatMessage[]): string | undefined {
  const question = messages.find((message) => message.role === "user");
  return question && textOf(question);
}
