// The engine as a table: what each event makes of a chat, and what the page does then.
import { Problem } from "holdfast-client/problem";
import { describe, expect, it } from "vitest";

import type { Conversation } from "../client/server";
import { answer, asking, question, requesting, RUN } from "./fixture";
import type { ChatMessage } from "./message";
import { type Effect, type Event, reduce } from "./reducer";
import { type Folded, initially, type State } from "./state";
import { newAnswer, newEdit, newMessage } from "./utterance";

const OPERATION = 4;
const idle: State = { ...initially(true), operation: OPERATION, conversationId: "conversation" };
const loading: State = { ...idle, phase: "loading", isReading: true };
const sending: State = { ...idle, phase: "sending", unsent: newMessage("more") };
const streaming: State = { ...idle, phase: "streaming" };
const half: ChatMessage = { ...answer, metadata: { runId: RUN, conversationId: "conversation" }, parts: [{ type: "text", text: "Half" }] };
const resuming: State = { ...idle, phase: "resuming", held: { messages: [question, half], runId: RUN } };

const limited = new Problem(429, "rate_limited", "Too many.", 7);
const away = new Problem(0, "unreachable", "");
const refused: State = { ...idle, unsent: sending.unsent, failure: { failed: "sending", problem: limited } };
const lost: State = { ...idle, failure: { failed: "reading", problem: away } };

const conversation = (runId: string | null = null): Conversation => ({
  id: "conversation",
  title: null,
  agent_id: "agent",
  live_run_id: runId,
  forked_from: null,
  created_at: "",
  last_message_at: "1",
});
const history = (messages: ChatMessage[], runId: string | null = null): Event => ({ type: "history", operation: OPERATION, conversation: conversation(runId), messages });
const resumed = (hasStream: boolean): Event => ({ type: "resumed", operation: OPERATION, runId: RUN, hasStream });

const read: Effect = { do: "read", operation: OPERATION + 1, conversationId: "conversation" };
const resume: Effect = { do: "resume", operation: OPERATION + 1, runId: RUN };
const paint: Effect = { do: "await-paint", operation: OPERATION };
const learn: Effect = { do: "learn-verdicts" };
const tell: Effect = { do: "tell" };
const cancel: Effect = { do: "cancel" };
const drop: Effect = { do: "drop-cancel" };
const set = (...messages: ChatMessage[]): Effect => ({ do: "set-messages", messages });

type Row = [what: string, before: State, event: Event, after: object, effects: Effect[], folded?: Partial<Folded>];

function table(rows: Row[]): void {
  it.each(rows)("%s", (_, before, event, after, effects, folded) => {
    const [state, done] = reduce(before, event, { messages: [question, answer], status: "ready", ...folded });
    expect(state).toMatchObject(after);
    expect(done).toEqual(effects);
  });
}

describe("opening", () => {
  table([
    ["reads an existing chat", initially(false), { type: "opened", isNew: false }, { phase: "loading", isReading: true }, [{ do: "read", operation: 1 }], { messages: [] }],
    ["reads nothing of a new chat", initially(true), { type: "opened", isNew: true }, { phase: "idle" }, []],
    ["reads a new chat again that has begun", idle, { type: "opened", isNew: true }, { isReading: true }, [read]],
    ["forgets the operations of a chat that the reader leaves", loading, { type: "closed" }, { operation: OPERATION + 1, isClosed: true }, [drop]],
    ["keeps the message in flight of a chat that the reader leaves", sending, { type: "closed" }, { operation: OPERATION, isClosed: true }, [drop]],
    ["hangs up on what the page gives up, and never calls it refused", sending, { type: "given-up" }, { phase: "sending", operation: OPERATION + 1 }, [{ do: "hang-up" }]],
    ["reads nothing in a chat that the reader has left", { ...idle, isClosed: true }, { type: "read" }, { isBehind: true }, []],
  ]);
});

describe("a history", () => {
  table([
    ["without a live run ends the loading", loading, history([question]), { phase: "idle", isReading: false, isBehind: false, agentId: "agent", seen: "1 null" }, [set(question), learn, paint]],
    ["with a live run resumes its answer", loading, history([question], RUN), { phase: "resuming", held: { messages: [question], runId: RUN } }, [set(question), resume]],
    ["keeps the current answer on the screen", idle, history([question], RUN), { held: { messages: [question, half] } }, [set(question), resume], { messages: [question, half] }],
    ["of a chat without a name resumes an answer that has not ended", idle, { ...history([question]), conversation: undefined } as Event, { phase: "resuming" }, [set(question), { ...resume, runId: undefined } as Effect]],
    ["says why the newest answer failed", loading, history([{ ...answer, metadata: { status: "failed" } }]), { failure: { failed: "run" } }, [set({ ...answer, metadata: { status: "failed" } }), learn, paint]],
    ["keeps the earlier messages that the page has read", { ...idle, earlier: "c1" }, { ...history([answer]), earlier: "c2" } as Event, { earlier: "c1" }, [set(question, answer), learn, paint], { messages: [question, answer] }],
    ["that reaches the beginning has nothing before it", { ...idle, earlier: "c1" }, history([answer]), { earlier: undefined }, [set(answer), learn, paint], { messages: [question, answer] }],
    ["with other messages replaces the earlier ones", { ...idle, earlier: "c1" }, { ...history([answer]), earlier: "c2" } as Event, { earlier: "c2" }, [set(answer), learn, paint], { messages: [question] }],
    ["keeps a refused message", refused, history([question, answer]), { failure: refused.failure, unsent: refused.unsent }, [set(question, answer), learn, paint]],
    ["drops a refused message that has arrived", refused, history([{ ...question, id: refused.unsent!.id!, parts: [{ type: "text", text: "more" }] }]), { failure: undefined, unsent: undefined }, [expect.anything(), learn, paint]],
    ["of an older operation changes nothing", { ...idle, operation: OPERATION + 1 }, history([]), { operation: OPERATION + 1 }, []],
  ]);
});

describe("a failed read", () => {
  const event: Event = { type: "read-failed", operation: OPERATION, error: away };
  table([
    ["ends the loading", loading, event, { phase: "idle", isReading: false, failure: { failed: "reading", problem: away } }, [set(question, answer), learn, paint]],
    ["shows the held messages again", resuming, event, { failure: { failed: "reading" } }, [set(question, half), learn, paint], { messages: [question] }],
    ["keeps messages that are more than the held ones", resuming, event, { failure: { failed: "reading" } }, [learn, paint], { messages: [question, half, question] }],
  ]);
});

describe("a message", () => {
  const utterance = newMessage("more");
  const said: Event = { type: "said", utterance };
  const say: Effect = { do: "say", operation: OPERATION + 1, utterance };
  const replied: Event = { type: "replied", operation: OPERATION, utterance: sending.unsent!, before: [question] };
  table([
    ["is sent", idle, said, { phase: "sending", unsent: utterance }, [drop, say]],
    ["clears the problem", lost, said, { failure: undefined }, [drop, say]],
    ["shows the messages again that a resumption held", resuming, said, { phase: "sending", held: { messages: [question, half], isLeaving: true } }, [drop, say]],
    ["takes the agent that the reader has chosen", { ...initially(true), wantedAgentId: "new" }, said, { agentId: "new" }, [drop, { ...say, operation: 1 } as Effect], { messages: [] }],
    ["does not change the agent of a chat that has begun", { ...idle, agentId: "old", wantedAgentId: "new" }, said, { agentId: "old" }, [drop, say]],
    ["keeps the agent of a message that may have arrived", { ...initially(true), unsent: sending.unsent, failure: { failed: "sending", problem: away }, agentId: "old", wantedAgentId: "new" }, said, { agentId: "old" }, [drop, { ...say, operation: 1 } as Effect], { messages: [] }],
    ["is the server's once accepted", sending, { type: "accepted", runId: "run-2" }, { phase: "streaming", unsent: undefined, runId: "run-2" }, [tell]],
    ["that was stopped before is cancelled once accepted", { ...sending, wantsStop: true }, { type: "accepted", runId: "run-2" }, { phase: "streaming", wantsStop: false }, [tell, { ...cancel, runId: "run-2" }]],
    ["that is refused stays with its writer", sending, { type: "failed", error: limited }, { phase: "idle", failure: refused.failure, unsent: sending.unsent }, []],
    ["whose run failed at once is read from the history", sending, { type: "failed", error: new Problem(500, "model_failed", "", undefined, { run: "run" }) }, { phase: "idle", isBehind: true }, []],
    ["that is refused leaves the messages as they were", refused, { ...replied, utterance: refused.unsent! } as Event, { unsent: refused.unsent }, [set(question)]],
    ["makes the page read nothing after its first answer", idle, replied, { isReading: false }, []],
    ["is forgotten when its writer has changed it", refused, { type: "dismissed" }, { failure: undefined, unsent: undefined }, []],
    ["that waits for the network comes before a read", sending, { type: "read" }, { phase: "sending", isBehind: true }, []],
  ]);
  it.each([["an edit", newEdit("q", "hi")], ["another answer", newAnswer("a")]])("%s makes the page read the versions after its end", (_, version) => {
    const [state, effects] = reduce(idle, { type: "replied", operation: OPERATION, utterance: version, before: [] }, { messages: [question, answer], status: "ready" });
    expect(state).toMatchObject({ ended: "run-0", isReading: true });
    expect(effects).toEqual([read]);
  });
});

describe("earlier messages", () => {
  const more = { ...idle, earlier: "c1" };
  const arrived: Event = { type: "earlier", before: "c1", messages: [question], earlier: "c0" };
  table([
    ["are read once", more, { type: "earlier-wanted", limit: 5 }, { earlierProgress: "loading" }, [{ do: "read-earlier", before: "c1", limit: 5 }]],
    ["are not read twice at a time", { ...more, earlierProgress: "loading" }, { type: "earlier-wanted", limit: 5 }, {}, []],
    ["are not read before the beginning", idle, { type: "earlier-wanted", limit: 5 }, {}, []],
    ["stand before the first one", { ...more, earlierProgress: "loading" }, arrived, { earlier: "c0", earlierProgress: undefined }, [set(question, half)], { messages: [half] }],
    ["stand before held messages as well", { ...resuming, earlier: "c1", held: { messages: [half] } }, arrived, { held: { messages: [question, half] } }, [set(question)], { messages: [] }],
    ["of a former cursor are dropped", { ...more, earlier: "c2" }, arrived, { earlier: "c2" }, []],
    ["that could not be read can be tried again", { ...more, earlierProgress: "loading" }, { type: "earlier-failed" }, { earlierProgress: "failed" }, []],
  ]);
});

describe("a resumption", () => {
  const longer = [question, { ...half, parts: [{ type: "text" as const, text: "Half and half" }] }];
  const next = { ...half, id: "b", metadata: { runId: "run-2" } };
  table([
    ["shows the replay once it has caught up", resuming, { type: "caught-up" }, { held: { isLeaving: true } }, [learn, paint], { messages: longer }],
    ["keeps the old text while the new one is shorter", resuming, { type: "caught-up" }, { held: resuming.held }, [], { messages: [question, { ...half, parts: [] }] }],
    ["shows a shorter text if a worker was lost", { ...resuming, retrying: { attempt: 2, of: 3 } }, { type: "caught-up" }, { held: { isLeaving: true } }, [learn, paint], { messages: [question, { ...half, parts: [] }] }],
    ["shows the replay at the first new text", resuming, { type: "content" }, { held: { isLeaving: true } }, [learn, paint], { messages: longer }],
    ["of a run that waits for its turn keeps the shown answer", resuming, { type: "caught-up" }, { held: resuming.held }, [], { messages: [question, { ...next, parts: [] }] }],
    ["reads the history when the next answer has begun", resuming, { type: "caught-up" }, { isReading: true }, [read], { messages: [question, next] }],
    ["does not restart its read at each chunk", { ...resuming, isReading: true }, { type: "content" }, { held: resuming.held }, [], { messages: [question, next] }],
    ["streams once the view has the replay", resuming, { type: "painted", operation: OPERATION }, { phase: "streaming", held: undefined }, [], { status: "streaming" }],
    ["ends once the view has all of it", resuming, { type: "painted", operation: OPERATION }, { phase: "idle", held: undefined }, []],
    ["reads a change that had to wait", { ...resuming, isBehind: true }, { type: "painted", operation: OPERATION }, { isReading: true }, [read]],
    ["without a stream reads the history", resuming, resumed(false), { missing: 1, isReading: true }, [read]],
    ["without a stream ends at the third time", { ...resuming, missing: 2 }, resumed(false), { missing: 0, held: { isLeaving: true } }, [learn, paint]],
    ["with another answer reads the history", resuming, resumed(true), { missing: 1 }, [read], { messages: [question, next] }],
    ["with its answer ends", resuming, resumed(true), { missing: 0, held: { isLeaving: true } }, [learn, paint], { messages: longer }],
    ["that failed shows the held messages again", { ...resuming, ...lost, phase: "idle", held: resuming.held } as State, resumed(false), { held: { isLeaving: true } }, [set(question, half), learn, paint], { messages: [question], status: "error" }],
  ]);
});

describe("a stream", () => {
  table([
    ["whose worker was lost is resumed", streaming, { type: "superseded", attempt: { crashes: 1, maxCrashes: 3 } }, { phase: "resuming", retrying: { attempt: 2, of: 3 }, held: { messages: [question, half], runId: RUN } }, [resume], { messages: [question, half] }],
    ["that another answer has replaced makes the page read", streaming, { type: "superseded" }, { phase: "resuming", isReading: true, held: { messages: [question, answer] } }, [read]],
    ["that ends makes the chat idle", streaming, { type: "ended", isError: false }, { phase: "idle" }, [drop]],
    ["that ends with a question keeps the stop", streaming, { type: "ended", isError: false }, { phase: "idle" }, [], { messages: [question, asking] }],
    ["that ends clears the problem of a failed stop", { ...streaming, failure: lost.failure }, { type: "ended", isError: false }, { failure: undefined }, [drop]],
    ["that is lost says so", streaming, { type: "failed", error: away }, { phase: "idle", failure: { failed: "reading" } }, []],
    ["whose run fails says so", streaming, { type: "failed", error: new Error("no") }, { phase: "idle", failure: { failed: "run" } }, []],
    ["reconnects", streaming, { type: "disconnected", wait: 100 }, { phase: "streaming", isReconnecting: true, nextTryAt: undefined }, []],
    ["is connected again", { ...streaming, isReconnecting: true }, { type: "connected" }, { isReconnecting: false }, []],
  ]);
});

describe("a stop", () => {
  table([
    ["cancels the run", streaming, { type: "stopped" }, { phase: "streaming" }, [cancel]],
    ["waits for the acceptance of a message", sending, { type: "stopped" }, { phase: "sending", wantsStop: true }, []],
    ["takes a message back that cannot arrive", { ...sending, isReconnecting: true }, { type: "stopped" }, { phase: "idle", failure: { failed: "sending" } }, [{ do: "hang-up" }, { ...cancel, messageId: sending.unsent!.id, isQuiet: true }]],
    ["takes a message back whose network fails later", { ...sending, wantsStop: true }, { type: "disconnected" }, { phase: "idle", failure: { failed: "sending" } }, [{ do: "hang-up" }, { ...cancel, messageId: sending.unsent!.id, isQuiet: true }]],
    ["leaves an open stream to its own end", streaming, { type: "cancelled" }, { phase: "streaming" }, []],
    ["reads a run that waited", idle, { type: "cancelled" }, { isReading: true }, [tell, read]],
    ["that failed says so", streaming, { type: "cancel-failed", error: away }, { phase: "streaming", failure: { failed: "reading" } }, []],
  ]);
});

describe("an answer to a question", () => {
  const verdict: Event = { type: "answered", runId: RUN, answer: { approvalId: "p", verdict: { approved: true } } };
  const outcome: Event = { type: "answered", runId: RUN, answer: { callId: "c", outcome: { output: "yes" } } };
  const told = { ...asking, parts: [{ ...asking.parts[0], state: "output-available", output: "yes" }] } as ChatMessage;
  const two = { ...requesting, parts: [...requesting.parts, ...asking.parts] } as ChatMessage;
  table([
    ["makes the page follow the run", idle, verdict, { phase: "resuming", verdicts: new Map([["p", { approved: true }]]) }, [tell, drop, resume], { messages: [question, requesting] }],
    ["is shown at once", idle, outcome, { phase: "resuming", held: { messages: [question, told] } }, [set(question, told), tell, drop, resume], { messages: [question, asking] }],
    ["waits for the answer to the other question", idle, verdict, { phase: "idle" }, [tell, drop], { messages: [question, two] }],
    ["does not interrupt a message that the reader sends instead", sending, verdict, { phase: "sending", isBehind: true }, [tell, drop], { messages: [question, requesting] }],
    ["wins over an older verdict of the server", { ...idle, verdicts: new Map([["p", { approved: true }]]) }, { type: "verdicts", verdicts: new Map([["p", { approved: false }]]) }, { verdicts: new Map([["p", { approved: true }]]) }, []],
  ]);
});

describe("a change from elsewhere", () => {
  const looked: Event = { type: "looked", operation: OPERATION, conversation: conversation() };
  table([
    ["makes an idle page read", idle, { type: "changed" }, { isReading: true }, [read]],
    ["waits for an answer of this page", streaming, { type: "changed" }, { isBehind: true, isReading: false }, []],
    ["in another tab drops a stop", streaming, { type: "changed", isByOtherTab: true }, { isBehind: true }, [drop]],
    ["by this page notifies the other tabs", idle, { type: "restored" }, { isReading: true }, [tell, read]],
    ["is looked for when the reader returns", idle, { type: "returned" }, {}, [{ do: "look", operation: OPERATION, conversationId: "conversation" }]],
    ["is not looked for during an answer", streaming, { type: "returned" }, {}, []],
    ["is read when the reader returns after a failed read", lost, { type: "returned" }, { isReading: true }, [read]],
    ["is read when the reader returns to a message that may have arrived", { ...refused, failure: { failed: "sending", problem: away } }, { type: "returned" }, { isReading: true }, [read]],
    ["is read when the conversation is newer", { ...idle, seen: "0 null" }, looked, { isReading: true }, [read]],
    ["is none when the conversation is the same", { ...idle, seen: "1 null" }, looked, { isReading: false }, []],
  ]);
});

describe("messages during an answer", () => {
  const waiting = { id: "w", runId: "run-2", text: "shorter", mode: "steer" } as const;
  const said: ChatMessage = { id: "w", role: "user", parts: [{ type: "text", text: "shorter" }] };
  const live: Folded = { messages: [question, half], status: "streaming" };
  const kept: State = { ...streaming, waiting: [waiting] };
  table([
    ["wait below the answer", streaming, { type: "posted", message: waiting }, { waiting: [waiting] }, [tell], live],
    ["stand before the answer once they have joined", kept, { type: "steered", messageId: "w" }, { waiting: [], joined: ["w"] }, [set(question, said, half)], live],
    ["join although the stream tells it first", { ...streaming, joined: ["w"] }, { type: "posted", message: waiting }, { waiting: [] }, [tell, set(question, said, half)], live],
    ["are read by no page that does not know them", streaming, { type: "steered", messageId: "x" }, { waiting: [], joined: ["x"] }, [], live],
    ["can be taken back", kept, { type: "taken-back", messageId: "w" }, { waiting: [] }, [tell], live],
    ["have a run of their own after the answer", kept, { type: "ended", isError: false }, { isBehind: true, phase: "idle" }, [drop], { messages: [question, answer] }],
    ["stay out of the history while another run is live", { ...resuming, waiting: [waiting] }, history([question, said], RUN), { waiting: [waiting], held: { messages: [question, half] } }, [set(question), resume]],
    ["stay out of a history that says that they wait", resuming, { ...history([question, said], RUN), queued: [{ id: "w", runId: "run-2" }] } as Event, { waiting: [{ ...waiting, files: [], mode: "enqueue" }], held: { messages: [question, half] } }, [set(question), resume]],
    ["are ordinary ones when theirs is live", { ...resuming, waiting: [waiting] }, history([question, answer, said], "run-2"), { waiting: [] }, [set(question, answer, said), { ...resume, runId: "run-2" }]],
    ["are caught up with if the run had ended before", idle, { type: "posted", message: waiting }, { isReading: true }, [tell, read]],
  ]);
});
