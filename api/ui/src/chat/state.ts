// This file holds what the page knows of a chat beside its messages, and derives from both what a view shows.
import type { ChatStatus } from "ai";
import type { Problem } from "holdfast-client/problem";

import type { Failed, Posting, Progress, Unsent, WaitingMessage } from "./chat";
import type { ChatMessage } from "./message";
import { isWaiting, withVerdicts, type Verdicts } from "./questions";
import type { Utterance } from "./utterance";

/** A chat is in one phase at a time. Whether it waits for its reader is in its newest message. */
export type Phase =
  /** The page is reading the history for the first time. */
  | "loading"
  | "idle"
  /** A message is in flight to the server. */
  | "sending"
  /** The server has taken the message, and the page receives the answer. */
  | "streaming"
  /** The page receives an existing answer again, from its beginning. */
  | "resuming";

export interface State {
  phase: Phase;
  /** Counts the operations. The page ignores the result of an older one than the newest. */
  operation: number;
  /** Whether the newest operation is a read: it replaces all messages itself. */
  isReading: boolean;
  /** Whether the reader has left the chat. */
  isClosed: boolean;
  failure?: { failed: Failed; problem: Problem };
  /** The newest utterance, as long as the page does not know that the server has it. */
  unsent?: Utterance;
  /** Whether the reader has stopped the answer to the utterance before the answer existed. */
  wantsStop: boolean;
  held?: Held;
  /** How many consecutive streams of the newest answer were missing or had another answer. */
  missing: number;
  isReconnecting: boolean;
  /** The time of the next try, in ms since the epoch, if the pause is long enough to show. */
  nextTryAt?: number;
  /** The run of the answer that is being made, as far as the page knows it. */
  runId?: string;
  /** The agent's own word for its current activity. */
  doing?: string;
  retrying?: { attempt: number; of: number };
  conversationId?: string;
  /** The agent that the reader has chosen for a new chat. */
  wantedAgentId?: string;
  /** The chat's agent, from the first message on. */
  agentId?: string;
  /** The conversation's version when the page read its history. */
  seen?: string;
  /** Whether the page has not yet read a change. */
  isBehind: boolean;
  /** The run whose versions the page has read, or will read, after the run's end. */
  ended?: string;
  verdicts: Verdicts;
  /** The messages that no run has read. */
  waiting: WaitingMessage[];
  /** The messages in flight beside the answer. */
  posting: Posting[];
  /** The cursor of the messages before the first one, if the page has not read them. */
  earlier?: string;
  earlierProgress?: "loading" | "failed";
  /** The ids of messages that have joined a run, also of those that the page has not learnt of yet. */
  joined: string[];
}

/** The page shows these messages while the SDK rebuilds them, so that the reader does not see them grow again. */
export interface Held {
  messages: ChatMessage[];
  /** The run whose answer the stream must bring. */
  runId?: string;
  /** Whether the page shows the SDK's messages as soon as the view has received them. */
  isLeaving?: boolean;
}

/** The AI SDK's part of a chat: it folds chunks into messages. */
export interface Folded {
  messages: ChatMessage[];
  status: ChatStatus;
}

export const initially = (isNew: boolean): State => ({
  phase: isNew ? "idle" : "loading",
  operation: 0,
  isReading: false,
  isClosed: false,
  wantsStop: false,
  missing: 0,
  isReconnecting: false,
  isBehind: false,
  verdicts: new Map(),
  waiting: [],
  posting: [],
  joined: [],
});

/** Returns the shown messages, without the known verdicts of their approvals. */
export function shownOf({ held }: State, { messages }: Folded): ChatMessage[] {
  return held?.messages ?? messages;
}

export function progressOf(state: State, folded: Folded): Progress {
  const { phase, verdicts } = state;
  if (phase === "loading") return "loading";
  if (phase === "sending") return "submitted";
  // A run that still streams does not wait yet, whatever it has asked: it may be calling other tools at the same time.
  if (phase === "streaming") return folded.status === "streaming" ? "streaming" : "submitted";
  const last = shownOf(state, folded).at(-1);
  if (last && isWaiting(withVerdicts(last, verdicts))) return "waiting";
  if (phase === "idle") return "idle";
  return last?.role === "assistant" ? "streaming" : "submitted";
}

/** Whether a message or an answer of this page comes before the changes from elsewhere. */
export function isAsking({ phase }: State): boolean {
  return phase === "sending" || phase === "streaming" || phase === "resuming";
}

export function conversationOf({ conversationId }: State, { messages }: Folded): string | undefined {
  return conversationId ?? messages.findLast(({ metadata }) => metadata?.conversationId)?.metadata?.conversationId;
}

/** Returns the unsent message for a view. */
export function unsentOf({ unsent, phase }: Pick<State, "unsent" | "phase">): Unsent | undefined {
  return unsent && { text: unsent.text, ...(unsent.files ? { files: unsent.files } : {}), instead: unsent.instead, isUnderway: phase === "sending" };
}

/** Whether the chat takes a message now; a waiting run takes it instead of an answer. */
export function canSend(progress: Progress): boolean {
  return progress === "idle" || progress === "waiting";
}

/** Whether the server takes messages beside the answer that is being made. */
export function takesMore(state: State, folded: Folded): boolean {
  const progress = progressOf(state, folded);
  return (progress === "submitted" || progress === "streaming") && state.phase !== "sending" && conversationOf(state, folded) !== undefined;
}

/** Whether the newest message waits for the server's return. */
export function isNotSent({ unsent, isReconnecting }: { unsent?: Unsent; isReconnecting: boolean }): boolean {
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
