// Results of `recall` name the memories that an answer has used: this file finds them.
import type { ChatMessage } from "../chat/message";
import { isCall, nameOf } from "./call";

/** Returns the ids of the memories that the calls of an answer have returned, each once. */
export function memoriesOf({ parts }: ChatMessage): string[] {
  return [...new Set(parts.flatMap((part) => (isCall(part) && part.state === "output-available" && nameOf(part).tool === "recall" && !nameOf(part).server ? idsIn(part.output) : [])))];
}

/** Returns the ids in a result such as `{"memories": [{"id": "01a2", "version": 1}]}`. */
export function idsIn(output: unknown): string[] {
  const result = typeof output === "string" ? parsed(output) : output;
  const { memories } = (typeof result === "object" && result !== null ? result : {}) as { memories?: unknown };
  if (!Array.isArray(memories)) return [];
  return memories.flatMap((memory: { id?: unknown } | null) => (typeof memory?.id === "string" ? [memory.id] : []));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
