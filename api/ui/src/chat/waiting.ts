// Messages that the server has while an answer is being made: the page shows them below the answer until a run reads them.
// Before that, they are in flight.
import { type Conversation, readRuns } from "../client/server";
import type { Posting, WaitingMessage } from "./chat";
import { filesOf, partsOf } from "./files";
import { type ChatMessage, textOf } from "./message";
import type { Step } from "./reducer";
import { type Folded, type State, shownOf } from "./state";

/** Adds a message in flight, or changes it. */
export function withPosting(all: Posting[], posting: Posting): Posting[] {
  return all.some(({ id }) => id === posting.id) ? all.map((other) => (other.id === posting.id ? posting : other)) : [...all, posting];
}

export function without(state: State, posting: string | undefined): State {
  return { ...state, posting: state.posting.filter(({ id }) => id !== posting) };
}

/** Adds a message. The stream or the history may have brought it before the server's answer arrived. */
export function withPosted(state: State, message: WaitingMessage, folded: Folded): Step {
  if (state.joined.includes(message.id)) return joined(state, message, folded);
  if ([...state.waiting, ...shownOf(state, folded)].some(({ id }) => id === message.id)) return [state, []];
  return [{ ...state, waiting: [...state.waiting, message] }, []];
}

/** Moves a message before the answer of the run that has read it. The page may not know the message yet. */
export function withSteered(state: State, messageId: string, folded: Folded): Step {
  const next = { ...state, joined: [...state.joined, messageId], waiting: state.waiting.filter(({ id }) => id !== messageId) };
  const message = state.waiting.find(({ id }) => id === messageId);
  return message ? joined(next, message, folded) : [next, []];
}

/** A message whose run has not begun. */
export interface Queued {
  /** The server's id of the message. */
  id: string;
  runId: string;
}

/** More messages than these hardly wait. */
const MOST = 50;

/** Returns the messages of a conversation whose runs have not begun, in their order; none if that cannot be read. */
export async function queuedIn({ id, live_run_id }: Conversation, messages: ChatMessage[]): Promise<Queued[]> {
  // Usually only the question of the live run has no answer.
  const hasOthers = live_run_id !== null && messages.slice(-2).filter(({ role }) => role === "user").length === 2;
  const runs = hasOthers ? await readRuns({ conversationId: id, status: "queued", limit: MOST }).catch(() => undefined) : undefined;
  return (runs?.items ?? []).map((run) => ({ id: run.input_message_id, runId: run.id })).reverse();
}

/** Takes the messages that still wait for the live run out of a history: those that this page has sent, and others. */
export function apart(known: WaitingMessage[], history: ChatMessage[], { runId: liveRunId, queued = [] }: { runId?: string; queued?: Queued[] }) {
  const others = queued.filter(({ id }) => !known.some((message) => message.id === id)).flatMap((one) => waitingOf(one, history));
  const still = liveRunId === undefined ? [] : [...known, ...others].filter(({ runId }) => runId !== liveRunId);
  return { waiting: still, messages: history.filter(({ id }) => !still.some((message) => message.id === id)) };
}

function waitingOf({ id, runId }: Queued, history: ChatMessage[]): WaitingMessage[] {
  const message = history.find((message) => message.id === id);
  return message ? [{ id, runId, text: textOf(message), files: filesOf(message), mode: "enqueue" }] : [];
}

function joined(state: State, message: WaitingMessage, folded: Folded): Step {
  const held = state.held && { ...state.held, messages: withJoined(state.held.messages, message) };
  return [{ ...state, held }, [{ do: "set-messages", messages: withJoined(folded.messages, message) }]];
}

/** Returns the messages with one that has joined the run of the newest answer: it comes before that answer. */
function withJoined(messages: ChatMessage[], { id, text, files }: WaitingMessage): ChatMessage[] {
  if (messages.some((message) => message.id === id)) return messages;
  const joined: ChatMessage = { id, role: "user", parts: partsOf(text, files) };
  const at = messages.at(-1)?.role === "assistant" ? messages.length - 1 : messages.length;
  return messages.toSpliced(at, 0, joined);
}
