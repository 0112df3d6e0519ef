// The reducer is the page's engine: it says what each event makes of a chat, and what the page does then. It is a pure
// function; `effects.ts` carries its effects out and reports their results as events.
import { Problem, UNREACHABLE, problemFrom } from "holdfast-client/problem";

import { RUN_FAILED } from "../client/refusals";
import type { Conversation } from "../client/server";
import type { ChatMessage } from "./message";
import { failureOf } from "./outcome";
import { isWaiting, type Verdict, type Verdicts, withOutcome, withVerdicts } from "./questions";
import type { Posting, WaitingMessage } from "./chat";
import { readEarlier, withEarlier, withKept } from "./earlier";
import { type Folded, type State, conversationOf, isAsking, progressOf, reconnecting, retryingOf, shownOf, withAnswer } from "./state";
import { type Utterance, isVersion, unsentAfter } from "./utterance";
import { type Queued, apart, withPosted, withPosting, withSteered, without } from "./waiting";

export type Event =
  // Wishes of the reader.
  | { type: "opened"; isNew: boolean }
  | { type: "closed" }
  /** The page drops what is in flight: the chat is not on the screen, or another reader has signed in. */
  | { type: "given-up" }
  | { type: "agent-chosen"; agentId?: string }
  | { type: "said"; utterance: Utterance }
  | { type: "dismissed" }
  | { type: "stopped" }
  | { type: "read" }
  /** The reader goes to messages before the first one. */
  | { type: "earlier-wanted"; limit: number }
  /** The server has an answer to a question of the run. */
  | { type: "answered"; runId: string; answer: { approvalId: string; verdict: Verdict } | { callId: string; outcome: { output: unknown } | { error: string } } }
  /** The server has made another version of a message the current one, or has refused to. */
  | { type: "restored" }
  // Changes from elsewhere.
  /** The chat has changed on the server. */
  | { type: "changed"; isByOtherTab?: boolean }
  /** The reader, or the network, has returned after a while. */
  | { type: "returned" }
  // Events of the stream.
  | { type: "connected" }
  | { type: "disconnected"; wait?: number }
  /** The server has taken the message: this run answers it. */
  | { type: "accepted"; runId: string }
  /** The server has made this conversation of the chat. */
  | { type: "named"; conversationId: string }
  /** A chunk of the answer itself has arrived. */
  | { type: "content" }
  | { type: "activity"; doing: string }
  /** A replay has brought everything up to now. */
  | { type: "caught-up" }
  /** The chunks so far are no longer the answer; `attempt` is the server's reason, if it gave one. */
  | { type: "superseded"; attempt?: unknown }
  | { type: "ended"; isError: boolean }
  | { type: "failed"; error: unknown }
  // Results of effects; those with an operation are ignored when a newer one has begun.
  | { type: "history"; operation: number; conversation?: Conversation; messages: ChatMessage[]; earlier?: string; queued?: Queued[] }
  | { type: "read-failed"; operation: number; error: unknown }
  | { type: "looked"; operation: number; conversation: Conversation }
  | { type: "resumed"; operation: number; runId?: string; hasStream: boolean }
  /** The answer to the utterance has ended, or the server refused it. `before` are the messages before it. */
  | { type: "replied"; operation: number; utterance: Utterance; before: ChatMessage[] }
  | { type: "painted"; operation: number }
  | { type: "earlier"; before: string; messages: ChatMessage[]; earlier?: string }
  | { type: "earlier-failed" }
  | { type: "cancelled" }
  | { type: "cancel-failed"; error: unknown }
  | { type: "verdicts"; verdicts: Verdicts }
  /** A message beside the answer that is being made is in flight, or refused. */
  | { type: "posting"; posting: Posting }
  /** The server has the message, whose posting had this id. */
  | { type: "posted"; message: WaitingMessage; id?: string }
  /** The writer has a message again that was in flight. */
  | { type: "withdrawn"; id: string }
  | { type: "taken-back"; messageId: string }
  /** A message has joined the run of the newest answer. */
  | { type: "steered"; messageId: string };

export type Effect =
  /** Reads the conversation and its messages, and ends an open stream. */
  | { do: "read"; operation: number; conversationId?: string }
  | { do: "look"; operation: number; conversationId: string }
  /** Reads the messages before the first one. */
  | { do: "read-earlier"; before: string; limit: number }
  /** Replays the newest answer. */
  | { do: "resume"; operation: number; runId?: string }
  | { do: "say"; operation: number; utterance: Utterance }
  | { do: "set-messages"; messages: ChatMessage[] }
  /** Reports when the view has received the newest messages. */
  | { do: "await-paint"; operation: number }
  | { do: "learn-verdicts" }
  | { do: "hang-up" }
  /** Ends one answer and no later one: this run's, or the one to this message. A quiet cancel reports only its success. */
  | { do: "cancel"; runId?: string; messageId?: string; isQuiet?: boolean }
  | { do: "drop-cancel" }
  /** Notifies the other tabs. */
  | { do: "tell" };

export type Step = [State, Effect[]];

/** An operation begins without these. */
const QUIET = { doing: undefined, retrying: undefined, isReconnecting: false, nextTryAt: undefined, failure: undefined } satisfies Partial<State>;
const CONNECTED = { isReconnecting: false, nextTryAt: undefined } satisfies Partial<State>;

export function reduce(state: State, event: Event, folded: Folded): Step {
  if ("operation" in event && event.operation !== state.operation) return [state, []];
  switch (event.type) {
    case "opened":
      return event.isNew && !state.conversationId ? [{ ...state, isClosed: false }, []] : read({ ...state, isClosed: false }, folded);
    case "closed":
      return [{ ...(state.phase === "sending" ? state : begin(state)), isClosed: true }, [{ do: "drop-cancel" }]];
    case "given-up":
      return [begin(state), [{ do: "hang-up" }]];
    case "agent-chosen":
      return [{ ...state, wantedAgentId: event.agentId }, []];
    case "said":
      return say(state, event.utterance, folded);
    case "dismissed":
      return [state.failure?.failed === "sending" ? { ...state, failure: undefined, unsent: undefined } : state, []];
    case "stopped":
      return stop(state, folded);
    case "read":
      return read(state, folded);
    case "earlier-wanted":
      return readEarlier(state, event.limit);
    case "earlier":
      return withEarlier(state, event, folded);
    case "earlier-failed":
      return [{ ...state, earlierProgress: "failed" }, []];
    case "answered":
      return answered(state, event, folded);
    case "restored":
      return also(catchUpWithOthers({ ...state, isBehind: true }, folded), [{ do: "tell" }]);
    case "changed":
      return also(catchUpWithOthers({ ...state, isBehind: true }, folded), event.isByOtherTab ? [{ do: "drop-cancel" }] : []);
    case "returned":
      return returned(state, folded);
    case "connected":
      return [{ ...state, ...CONNECTED }, []];
    case "disconnected": {
      const next = { ...state, ...reconnecting(event.wait) };
      return state.wantsStop ? stop(next, folded) : [next, []];
    }
    case "accepted": {
      const { runId } = event;
      const next: State = { ...state, phase: "streaming", runId, unsent: undefined, wantsStop: false };
      return [next, [{ do: "tell" }, ...(state.wantsStop ? [{ do: "cancel", runId } as const] : [])]];
    }
    case "named":
      return [{ ...state, conversationId: event.conversationId }, []];
    case "content":
      return uncover({ ...state, retrying: undefined }, folded);
    case "activity":
      return [{ ...state, doing: event.doing }, []];
    case "caught-up":
      return uncover(state, folded);
    case "superseded":
      return superseded(state, event.attempt, folded);
    case "ended":
      return ended(state, event.isError, folded);
    case "failed":
      return failed(state, event.error, folded);
    case "history":
      return history(state, event, folded);
    case "read-failed": {
      const failure = { failed: "reading", problem: problemFrom(event.error) } as const;
      const next = { ...settled(state), ...QUIET, failure, isReading: false, isBehind: false };
      return also(release(next), keepHeld(state, folded));
    }
    case "looked":
      return state.isBehind || versionOf(event.conversation) !== state.seen ? read(state, folded) : [state, []];
    case "resumed":
      return resumed(state, event, folded);
    case "replied":
      return replied(state, event, folded);
    case "painted":
      return painted(state, folded);
    case "cancelled":
      return isAsking(state) ? [{ ...state, ...CONNECTED }, []] : readAll({ ...state, ...CONNECTED }, folded);
    case "cancel-failed": {
      const next: State = { ...state, ...CONNECTED, failure: { failed: "reading", problem: problemFrom(event.error) } };
      return isAsking(state) ? [next, []] : readAll(next, folded);
    }
    case "verdicts":
      // A verdict that this page gave meanwhile wins.
      return [{ ...state, verdicts: new Map([...event.verdicts, ...state.verdicts]) }, []];
    case "posting":
      return [{ ...state, posting: withPosting(state.posting, event.posting) }, []];
    case "posted":
      return posted(without(state, event.id), event.message, folded);
    case "withdrawn":
      return [without(state, event.id), []];
    case "taken-back":
      return [{ ...state, waiting: state.waiting.filter(({ id }) => id !== event.messageId) }, [{ do: "tell" }]];
    case "steered":
      return withSteered(state, event.messageId, folded);
  }
}

function begin(state: State): State {
  return { ...state, operation: state.operation + 1, isReading: false };
}

/** Reads the history, and then resumes the current answer. A message of this page comes first. */
function read(state: State, folded: Folded): Step {
  const behind = { ...state, isBehind: true };
  if (state.phase === "sending" || state.isClosed) return [behind, []];
  const next = { ...begin(behind), isReading: true };
  return [next, [{ do: "read", operation: next.operation, conversationId: conversationOf(state, folded) }]];
}

function readAll(state: State, folded: Folded): Step {
  return also(read(state, folded), [{ do: "tell" }]);
}

/** The run may have ended before the message arrived; then the message's own run is the live one. */
function posted(state: State, message: WaitingMessage, folded: Folded): Step {
  const [next, effects] = withPosted(state, message, folded);
  const isBehind = next.isBehind || (next.waiting.includes(message) && !isAsking(next));
  return also(catchUpWithOthers({ ...next, isBehind }, folded), [{ do: "tell" }, ...effects]);
}

function history(state: State, { conversation, messages: newest, earlier: before, queued }: Extract<Event, { type: "history" }>, folded: Folded): Step {
  const runId = conversation?.live_run_id ?? undefined;
  const { messages: all, earlier } = withKept(state, newest, before, folded);
  const { waiting, messages } = apart(state.waiting, all, { runId, queued });
  const unsent = unsentAfter(state.unsent, messages);
  const next: State = {
    ...settled(state),
    ...QUIET,
    isReading: false,
    isBehind: false,
    earlier,
    runId,
    waiting,
    unsent,
    failure: unsent && state.failure?.failed === "sending" ? state.failure : undefined,
    agentId: state.agentId ?? conversation?.agent_id ?? undefined,
    seen: conversation && versionOf(conversation),
    conversationId: conversation?.id,
    held: { messages: runId ? withAnswer(messages, shownOf(state, folded), runId) : messages },
  };
  const replaced: Effect = { do: "set-messages", messages };
  // Even a chat without a name may have a live run, if its newest answer has not ended.
  const isLive = runId !== undefined || (!conversation && messages.length > 0 && !messages.at(-1)?.metadata?.status);
  if (isLive) return also(resume(next, { ...folded, messages }, runId), [replaced]);
  const problem = failureOf(messages.at(-1));
  const failure = next.failure ?? (problem && { failed: "run", problem });
  return also(release({ ...next, failure }), [replaced]);
}

/** Replays the newest answer from its beginning: this run's, unless another answer already waits for its turn. */
function resume(state: State, folded: Folded, runId?: string): Step {
  if (state.phase === "sending" || state.isClosed) return [{ ...state, isBehind: true }, []];
  const next: State = { ...begin(state), phase: "resuming", held: { messages: shownOf(state, folded), runId } };
  return [next, [{ do: "resume", operation: next.operation, runId }]];
}

function resumed(state: State, { runId, hasStream }: Extract<Event, { type: "resumed" }>, folded: Folded): Step {
  const isThere = hasStream && (!runId || folded.messages.at(-1)?.metadata?.runId === runId);
  // The answer has ended since the last look, and the history has it.
  if (!isThere && folded.status === "ready" && state.missing < 2) return read({ ...state, missing: state.missing + 1 }, folded);
  // Only the history says whether the run has made another version of an answer.
  const next = { ...(isThere ? missVersions(state, folded) : state), missing: 0 };
  const isRefused = folded.status === "error" && state.failure?.failed === "reading";
  return also(release(next), isRefused ? keepHeld(state, folded) : []);
}

/** The server has another answer, or a worker was lost. Without a reason, all messages may have changed. */
function superseded(state: State, attempt: unknown, folded: Folded): Step {
  const held = { messages: shownOf(state, folded), runId: state.held?.runId };
  const next: State = { ...state, phase: "resuming", held, retrying: retryingOf(attempt) };
  return attempt ? resume(next, folded, folded.messages.at(-1)?.metadata?.runId) : read(next, folded);
}

/**
 * Shows the SDK's messages again, unless the newest is shorter than before: a slow network may pause in the middle of
 * the past.
 */
function uncover(state: State, folded: Folded): Step {
  const { held, retrying } = state;
  // Each chunk would restart the read, and no read would end before the stream.
  if (!held || held.isLeaving || state.isReading) return [state, []];
  const [last, newest] = [held.messages.at(-1), folded.messages.at(-1)];
  const isWanted = held.runId !== undefined && last?.metadata?.runId === held.runId;
  if (isWanted && newest?.metadata?.runId !== held.runId) {
    // Another answer waits for its turn after the shown one. When it has begun, the shown one is complete, and the
    // history has it.
    return newest?.role === "assistant" && newest.parts.length > 0 ? read(state, folded) : [state, []];
  }
  const isSame = last && newest && last.role === "assistant" && last.metadata?.runId === newest.metadata?.runId;
  return isSame && !retrying && lengthOf(newest) < lengthOf(last) ? [state, []] : release(state);
}

function release(state: State): Step {
  const held = state.held && { messages: state.held.messages, isLeaving: true };
  return [{ ...state, held }, [{ do: "learn-verdicts" }, { do: "await-paint", operation: state.operation }]];
}

function painted(state: State, folded: Folded): Step {
  const isOpen = folded.status === "submitted" || folded.status === "streaming";
  const phase = state.phase === "resuming" ? (isOpen ? "streaming" : "idle") : state.phase;
  return catchUpWithOthers({ ...state, phase, held: undefined }, folded);
}

/** Makes the held messages the current ones again, unless the SDK has more: their replacement failed. */
function keepHeld(state: State, folded: Folded): Effect[] {
  const shown = shownOf(state, folded);
  return shown.length >= folded.messages.length ? [{ do: "set-messages", messages: shown }] : [];
}

function say(state: State, utterance: Utterance, folded: Folded): Step {
  const conversationId = conversationOf(state, folded);
  const mayHaveBegun = state.unsent !== undefined && state.failure?.problem.status === 0;
  const isBegun = folded.messages.length > 0 || conversationId !== undefined || mayHaveBegun;
  const next: State = {
    ...begin(state),
    ...QUIET,
    phase: "sending",
    unsent: utterance,
    wantsStop: false,
    agentId: isBegun ? state.agentId : state.wantedAgentId,
    // The state keeps the conversation's id, because the answer that brought it may disappear.
    conversationId,
    held: state.held && { messages: state.held.messages, isLeaving: true },
  };
  return [next, [{ do: "drop-cancel" }, { do: "say", operation: next.operation, utterance }]];
}

/** A refusal changes nothing: the messages are as they were, and the writer gets the text back. */
function refuse(state: State, problem: Problem): State {
  return { ...state, ...QUIET, phase: "idle", wantsStop: false, failure: { failed: "sending", problem } };
}

function replied(state: State, { utterance, before }: Extract<Event, { type: "replied" }>, folded: Folded): Step {
  if (state.unsent === utterance) return also(catchUpWithOthers({ ...state, phase: "idle" }, folded), [{ do: "set-messages", messages: before }]);
  return catchUpWithOthers(isVersion(utterance) ? missVersions(state, folded) : state, folded);
}

function failed(state: State, error: unknown, folded: Folded): Step {
  const isRefusal = error instanceof Problem;
  const failure = isRefusal ? error : new Problem(0, RUN_FAILED, error instanceof Error ? error.message : String(error));
  if (state.phase === "sending") {
    const next = refuse(state, failure);
    // The server has the question of a failed run, so the page reads the rest from the history.
    return [failure.run ? { ...next, isBehind: true } : next, []];
  }
  const problem = isRefusal ? failure : (failureOf(folded.messages.at(-1)) ?? failure);
  return [{ ...state, ...CONNECTED, phase: "idle", failure: { failed: isRefusal ? "reading" : "run", problem }, retrying: undefined }, []];
}

function ended(state: State, isError: boolean, folded: Folded): Step {
  const isUncertain = !isError && state.failure?.failed === "reading";
  const next: State = {
    ...state,
    ...CONNECTED,
    phase: state.phase === "streaming" ? "idle" : state.phase,
    retrying: undefined,
    failure: isUncertain ? undefined : state.failure,
    // The next waiting message has a run now.
    isBehind: state.isBehind || state.waiting.length > 0,
  };
  return [next, !isError && progressOf(next, folded) === "idle" ? [{ do: "drop-cancel" }] : []];
}

function stop(state: State, folded: Folded): Step {
  // Without the run's name, a late request could end the next answer.
  if (state.phase !== "sending") return [state, [{ do: "cancel", runId: runOf(state, folded) }]];
  // Nearly always the run starts in a moment, and then the page cancels it.
  if (!state.isReconnecting) return [{ ...state, wantsStop: true }, []];
  // If the message has arrived, its run works on the server, and no reader wants it.
  const messageId = state.unsent?.id;
  return [refuse(state, new Problem(0, UNREACHABLE, "It was not sent.")), [{ do: "hang-up" }, { do: "cancel", messageId, isQuiet: true }]];
}

/** Follows the run if no other question is open. A reader that answers wants the run to continue. */
function answered(state: State, { runId, answer }: Extract<Event, { type: "answered" }>, folded: Folded): Step {
  const effects: Effect[] = [{ do: "tell" }, { do: "drop-cancel" }];
  let [next, messages] = [state, folded.messages];
  if ("verdict" in answer) next = { ...state, verdicts: new Map(state.verdicts).set(answer.approvalId, answer.verdict) };
  else {
    messages = withOutcome(messages, answer.callId, answer.outcome);
    effects.unshift({ do: "set-messages", messages });
    if (state.held) next = { ...state, held: { ...state.held, messages: withOutcome(state.held.messages, answer.callId, answer.outcome) } };
  }
  const after = { ...folded, messages };
  const last = shownOf(next, after).at(-1);
  return last && isWaiting(withVerdicts(last, next.verdicts)) ? [next, effects] : also(resume(next, after, runId), effects);
}

/** Reads the chat if it has changed. An open stream needs no look. */
function returned(state: State, folded: Folded): Step {
  const { failed, problem } = state.failure ?? {};
  // The page does not know whether the server has the unsent message.
  if (failed === "reading" || (failed === "sending" && problem?.status === 0)) return read(state, folded);
  const conversationId = conversationOf(state, folded);
  if (!conversationId || isAsking(state)) return [state, []];
  return [state, [{ do: "look", operation: state.operation, conversationId }]];
}

/** Reads the changes from elsewhere, which had to wait for a message or an answer of this page. */
function catchUpWithOthers(state: State, folded: Folded): Step {
  return state.isBehind && !isAsking(state) ? read(state, folded) : [state, []];
}

/** Marks the history for the next read if the newest answer has ended: a stream does not have the versions of messages. */
function missVersions(state: State, folded: Folded): State {
  const { runId, status } = folded.messages.at(-1)?.metadata ?? {};
  // A server may name an ended run as live for a while. The page therefore reads once for each run, and does not
  // repeat without end.
  return !status || runId === state.ended ? state : { ...state, ended: runId, isBehind: true };
}

/** Returns the run whose answer the page shows as being made. A chunk tells it later than the server's acceptance. */
function runOf(state: State, folded: Folded): string | undefined {
  const last = shownOf(state, folded).at(-1);
  return (last?.role === "assistant" && !last.metadata?.status && last.metadata?.runId) || state.runId;
}

function settled(state: State): State {
  return state.phase === "resuming" ? state : { ...state, phase: "idle" };
}

function also([state, effects]: Step, before: Effect[]): Step {
  return [state, [...before, ...effects]];
}

function lengthOf({ parts }: ChatMessage): number {
  return parts.reduce((length, part) => length + (part.type === "text" ? part.text.length : 0), 0);
}

function versionOf({ last_message_at, live_run_id }: Conversation): string {
  return `${last_message_at} ${live_run_id}`;
}
