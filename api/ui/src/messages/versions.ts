// A step leads from the shown version of a message to another one.
import type { ChatMessage } from "../chat/message";

export type Step = "previous" | "next";

/**
 * Returns the id of the version that a step leads to. It returns undefined at an end, and for a message of one version.
 */
export function neighbourOf({ metadata }: ChatMessage, step: Step): string | undefined {
  return metadata?.version?.[step] ?? undefined;
}
