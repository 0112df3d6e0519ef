// What is known of a chat beside its messages, and what a view is told of both.
import type { ChatStatus } from "ai";

import type { Problem } from "../client/problem";
import type { Failed, Progress, Unsent } from "./chat";
import type { ChatMessage } from "./message";
import { isWaiting, type Verdicts } from "./questions";

export interface State {
  isLoading: boolean;
  /** Shown in place of the messages while these are rebuilt, so that nobody sees them grow again. */
  held?: ChatMessage[];
  /** Whether an answer is taken up again. */
  isResuming: boolean;
  isReconnecting: boolean;
  /** When the next try is made, in ms since the epoch, where that is long enough to be told. */
  nextTryAt?: number;
  /** What the agent says that it is doing. */
  doing?: string;
  retrying?: { attempt: number; of: number };
  problem?: Problem;
  failed?: Failed;
  unsent?: Unsent;
  conversationId?: string;
  verdicts: Verdicts;
}

export const initially = (isNew: boolean): State => ({ isLoading: !isNew, isResuming: false, isReconnecting: false, verdicts: new Map() });

/** `messages` are the ones that are shown. */
export function progressOf({ isLoading, isResuming, unsent }: State, status: ChatStatus, messages: ChatMessage[]): Progress {
  if (isLoading) return "loading";
  // Also before the SDK has heard of it.
  if (unsent?.isUnderway) return "submitted";
  const last = messages.at(-1);
  // A run that still streams does not wait yet, whatever it has asked: it may be calling other tools at the same time.
  if (!isResuming && (status === "submitted" || status === "streaming")) return status;
  if (isWaiting(last)) return "waiting";
  if (isResuming) return last?.role === "assistant" ? "streaming" : "submitted";
  return "idle";
}

/** Whether something may be said now; to a run that waits, it is said instead of an answer. */
export function canSend(progress: Progress): boolean {
  return progress === "idle" || progress === "waiting";
}

/** Whether the newest message waits for the server's return. */
export function isNotSent({ unsent, isReconnecting }: Pick<State, "unsent" | "isReconnecting">): boolean {
  return isReconnecting && unsent?.isUnderway === true;
}

/** A pause that is shorter is not told. */
const TOLD_FROM_MS = 5_000;

export function reconnecting(wait = 0, now = Date.now()): Pick<State, "isReconnecting" | "nextTryAt"> {
  return { isReconnecting: true, nextTryAt: wait < TOLD_FROM_MS ? undefined : now + wait };
}

/** "Retrying (2 of 3)", of what an attempt tells of itself; older servers tell nothing. */
export function retryingOf(attempt: unknown): State["retrying"] {
  const { crashes, maxCrashes } = (attempt ?? {}) as { crashes?: number; maxCrashes?: number };
  return crashes && maxCrashes ? { attempt: crashes + 1, of: maxCrashes } : undefined;
}

/** A history with the answer that is being made, as it was shown last: a history knows nothing of it. */
export function withAnswer(history: ChatMessage[], shown: ChatMessage[], runId: string): ChatMessage[] {
  const last = shown.at(-1);
  const isMissing = last?.role === "assistant" && last.metadata?.runId === runId && !history.some(({ id }) => id === last.id);
  return isMissing ? [...history, last] : history;
}
