// This file reads from a conversation what the server tells of the model's context.
import type { ChatMessage, Data } from "./message";

/** Returns the usage of the model's budget at the newest answer that tells it. */
export function contextUsage(messages: readonly ChatMessage[]): Data["context"] | undefined {
  for (const { parts } of messages.toReversed()) {
    const part = parts.findLast((part) => part.type === "data-context");
    if (part) return part.data;
  }
  return undefined;
}

/** Returns the id of the first message that the model reads word by word, if the page has it and older ones. */
export function verbatimFrom(messages: readonly ChatMessage[]): string | undefined {
  const context = contextUsage(messages);
  const first = messages.findIndex(({ id }) => id === context?.verbatim_from || id === context?.verbatim_from_client_id);
  return first > 0 ? messages[first]?.id : undefined;
}
