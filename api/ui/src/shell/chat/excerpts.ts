// This file reads texts from a conversation, to copy or to name it.
import { filesOf } from "../../chat/files";
import { type ChatMessage, type Data, textOf } from "../../chat/message";

/** Returns the newest answer that has text. */
export function lastAnswer(messages: ChatMessage[]): string | undefined {
  const answer = messages.findLast((message) => message.role === "assistant" && textOf(message) !== "");
  return answer && textOf(answer);
}

export function firstQuestion(messages: ChatMessage[]): string | undefined {
  const question = messages.find((message) => message.role === "user");
  return question && (textOf(question) || filesOf(question)[0]?.name);
}

/** Returns the usage of the model's budget at the newest answer that tells it. */
export function contextUsage(messages: ChatMessage[]): Data["context"] | undefined {
  for (const { parts } of messages.toReversed()) {
    const part = parts.findLast((part) => part.type === "data-context");
    if (part) return part.data;
  }
  return undefined;
}
