// What is in the message field, and what has left it but did not arrive yet: it comes back if the sending fails.
import type { Progress } from "../chat/chat";
import { joined } from "./drafts";

export interface Composing {
  text: string;
  /** Sent, and nobody knows yet whether it has arrived. `isUnderway` once the chat says so. */
  pending?: { text: string; isUnderway: boolean };
  /** What has come back. Retrying elsewhere takes it out of the field again. */
  failed?: string;
}

export type Happening =
  | { is: "written"; text: string }
  | { is: "sent" }
  | { is: "progress"; progress: Progress; hasProblem: boolean };

export function next(now: Composing, happening: Happening): Composing {
  switch (happening.is) {
    case "written":
      return { ...now, text: happening.text };
    case "sent":
      return { text: "", pending: { text: now.text, isUnderway: false } };
    case "progress":
      return now.pending ? withOutcome(now, now.pending, happening) : withRetry(now, happening.progress);
  }
}

/** What is to be there after a reload: also what may not have arrived. */
export function draftIn({ text, pending }: Composing): string {
  return joined(pending?.text ?? "", text);
}

function withOutcome(
  now: Composing,
  pending: NonNullable<Composing["pending"]>,
  { progress, hasProblem }: { progress: Progress; hasProblem: boolean },
): Composing {
  if (progress === "streaming" || progress === "waiting") return { text: now.text };
  if (progress === "submitted") return { ...now, pending: { ...pending, isUnderway: true } };
  // What the chat said before it took the message is about an older one.
  if (!pending.isUnderway) return now;
  return hasProblem ? { text: joined(pending.text, now.text), failed: pending.text } : { text: now.text };
}

function withRetry(now: Composing, progress: Progress): Composing {
  if (progress !== "submitted" || now.failed === undefined || now.text.trim() !== now.failed.trim()) return now;
  return { text: "", pending: { text: now.failed, isUnderway: true } };
}
