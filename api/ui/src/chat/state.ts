// This file holds the state of a chat beside its messages, and derives a view's progress from both.
import type { ChatStatus } from "ai";

import type { Problem } from "../client/problem";
import type { Failed, Progress, Unsent } from "./chat";
import type { ChatMessage } from "./message";
import { isWaiting, type Verdicts } from "./questions";

export interface State {
  isLoading: boolean;
  /**
   * The page shows these in place of the messages while the SDK rebuilds them. The reader therefore does not see them
   * grow again.
   */
  held?: ChatMessage[];
  /** Whether the page is resuming an answer. */
  isResuming: boolean;
  isReconnecting: boolean;
  /** The time of the next try, in ms since the epoch, if the pause is long enough to show. */
  nextTryAt?: number;
  /** The agent's own word for its current activity. */
  doing?: string;
  retrying?: { attempt: number; of: number };
  problem?: Problem;
  failed?: Failed;
  unsent?: Unsent;
  conversationId?: string;
  verdicts: Verdicts;
}

export const initially = (isNew: boolean): State => ({ isLoading: !isNew, isResuming: false, isReconnecting: false, verdicts: new Map() });

/** `messages` are the shown ones. */
export function progressOf({ isLoading, isResuming, unsent }: State, status: ChatStatus, messages: ChatMessage[]): Progress {
  if (isLoading) return "loading";
  // This holds even before the SDK knows of the message.
  if (unsent?.isUnderway) return "submitted";
  const last = messages.at(-1);
  // A run that still streams does not wait yet, whatever it has asked: it may be calling other tools at the same time.
  if (!isResuming && (status === "submitted" || status === "streaming")) return status;
  if (isWaiting(last)) return "waiting";
  if (isResuming) return last?.role === "assistant" ? "streaming" : "submitted";
  return "idle";
}

/** Whether the chat takes a message now; a waiting run takes it instead of an answer. */
export function canSend(progress: Progress): boolean {
  return progress === "idle" || progress === "waiting";
}

/** Whether the newest message waits for the server's return. */
export function isNotSent({ unsent, isReconnecting }: Pick<State, "unsent" | "isReconnecting">): boolean {
  return isReconnecting && unsent?.isUnderway === true;
}

/** The page does not show a shorter pause. */
const TOLD_FROM_MS = 5_000;

export function reconnecting(wait = 0, now = Date.now()): Pick<State, "isReconnecting" | "nextTryAt"> {
  return { isReconnecting: true, nextTryAt: wait < TOLD_FROM_MS ? undefined : now + wait };
}

/** Returns the numbers for "Retrying (2 of 3)" from an attempt's data; older servers send none. */
export function retryingOf(attempt: unknown): State["retrying"] {
  const { crashes, maxCrashes } = (attempt ?? {}) as { crashes?: number; maxCrashes?: number };
  return crashes && maxCrashes ? { attempt: crashes + 1, of: maxCrashes } : undefined;
}

/** Returns a history with the current answer as the page last showed it, because a history does not include it. */
export function withAnswer(history: ChatMessage[], shown: ChatMessage[], runId: string): ChatMessage[] {
  const last = shown.at(-1);
  const isMissing = last?.role === "assistant" && last.metadata?.runId === runId && !history.some(({ id }) => id === last.id);
  return isMissing ? [...history, last] : history;
}
