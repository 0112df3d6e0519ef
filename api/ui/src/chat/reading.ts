// Reading what the server has of a chat: its history, and the answer that is being made, from its beginning. What is on the
// screen stays there until what is read can take its place.
import { patiently } from "../client/patience";
import { problemFrom } from "../client/problem";
import { type Conversation, readConversation, readMessages } from "../client/server";
import { type LiveState, QUIET, THROTTLE_MS } from "./liveState";
import type { ChatMessage } from "./message";
import { failureOf, verdictsWith } from "./outcome";
import { type State, reconnecting, withAnswer } from "./state";

export class Reading {
  /** Whether the newest stream was there, and how often one after the other it was not, or was of another answer. */
  hasStream = false;
  #vain = 0;
  /** The run whose answer a resumed stream is to tell, as long as its messages are held. */
  #wanted: string | undefined;
  /** Whether a reading is the newest: it puts all messages in place itself. */
  #isReading = () => false;
  /** The conversation as it was when its history was read. */
  #seen: string | undefined;
  /** Whether something has happened that was not read yet. */
  #isBehind = false;
  /** The run whose versions were read, or are to be read, after its end. */
  #ended: string | undefined;
  #closed = new AbortController();

  constructor(readonly live: LiveState) {}

  open(): void {
    this.#closed = new AbortController();
    if (!this.live.isNew || this.live.now.conversationId) void this.read();
  }

  close(): void {
    this.#closed.abort(new DOMException("the chat was left", "AbortError"));
  }

  /** Reads the history, and takes up what is being answered. */
  async read(): Promise<void> {
    const { live } = this;
    this.#isBehind = true;
    if (this.#isUntimely) return;
    const isNewest = (this.#isReading = live.begin());
    try {
      // Order matters: a run that ends between the two is in the history then.
      const conversation = await this.#conversation(isNewest);
      const messages = await this.#patiently(() => readMessages<ChatMessage>(conversation?.id ?? live.sdk.id), isNewest);
      if (!isNewest()) return;
      await live.sdk.stop();
      if (!isNewest()) return;
      this.#isBehind = false;
      live.agentId ??= conversation?.agent_id ?? undefined;
      this.#seen = conversation && versionOf(conversation);
      const runId = conversation?.live_run_id;
      const held = runId ? withAnswer(messages, live.shown, runId) : messages;
      live.sdk.messages = messages;
      live.set({ ...this.#quietAfter(messages), conversationId: conversation?.id, held });
      // A chat that has no name yet may be at work all the same, if its newest answer has not ended.
      if (runId || (!conversation && messages.length > 0 && !messages.at(-1)?.metadata?.status)) return void this.resume(runId ?? undefined);
      this.release(isNewest);
      const failure = failureOf(messages.at(-1));
      if (failure && !live.now.problem) live.set({ problem: failure, failed: "run" });
    } catch (error) {
      if (!isNewest()) return;
      this.#isBehind = false;
      this.#keepHeld();
      live.set({ ...QUIET, problem: problemFrom(error), failed: "reading" });
      this.release(isNewest);
    }
  }

  /** Has the newest answer told once more from its beginning: this run's, unless another one waits for its turn already. */
  async resume(runId?: string): Promise<void> {
    const { live } = this;
    if (this.#isUntimely) return void (this.#isBehind = true);
    const isNewest = live.begin();
    this.#wanted = runId;
    this.hold();
    await live.sdk.stop();
    if (!isNewest()) return;
    this.hasStream = false;
    await live.sdk.resumeStream();
    if (!isNewest()) return;
    // It has ended since one has looked, and the history has it.
    const isThere = this.hasStream && (!runId || live.sdk.lastMessage?.metadata?.runId === runId);
    const isOver = !isThere && live.sdk.status === "ready" && this.#vain < 2;
    this.#vain = isOver ? this.#vain + 1 : 0;
    if (isOver) return this.read();
    // Only the history says whether the run has made another version of an answer.
    if (isThere) this.missVersions();
    if (live.sdk.status === "error" && live.now.failed === "reading") this.#keepHeld();
    this.release(isNewest);
  }

  /** Shows what is shown now while the messages are rebuilt. */
  hold(): void {
    this.live.set({ held: this.live.shown, isResuming: true });
  }

  /** Shows the messages again, unless the newest says less than it did: a slow network may pause in the middle of the past. */
  catchUp(): void {
    // Each chunk would begin the reading again, and none would end before the stream.
    if (this.#isReading()) return;
    const { now, sdk } = this.live;
    const held = now.held?.at(-1);
    const told = sdk.lastMessage;
    if (this.#wanted && held?.metadata?.runId === this.#wanted && told?.metadata?.runId !== this.#wanted) return this.#takeTurns(told);
    const isSame = held && told && held.role === "assistant" && held.metadata?.runId === told.metadata?.runId;
    const isBehind = isSame && lengthOf(told) < lengthOf(held);
    if (!isBehind || now.retrying) this.release(this.live.watch());
  }

  /** Another answer waits for its turn behind the one that is shown. When it has begun, that one is whole, and in the history. */
  #takeTurns(next: ChatMessage | undefined): void {
    if (next?.role === "assistant" && next.parts.length > 0) void this.read();
  }

  /** Shows the messages again, as soon as the view has heard of the newest. */
  release(isNewest: () => boolean): void {
    this.#wanted = undefined;
    void this.#learnVerdicts();
    setTimeout(() => {
      if (!isNewest()) return;
      this.live.set({ held: undefined, isResuming: false });
      void this.catchUpWithOthers();
    }, THROTTLE_MS + 10);
  }

  /** Whether the chat is still what it was. A stream that is open looks after itself. */
  async look(): Promise<void> {
    const { live } = this;
    const { failed, problem } = live.now;
    // Nobody knows whether the server has what could not be sent.
    if (failed === "reading" || (failed === "sending" && problem?.status === 0)) return this.read();
    const id = live.conversationId;
    if (!id || live.isAsking || live.said?.isUnderway) return;
    const isNewest = live.watch();
    const conversation = await readConversation(id).catch(() => undefined);
    if (!conversation || !isNewest() || (!this.#isBehind && versionOf(conversation) === this.#seen)) return;
    await this.read();
  }

  /** Something has happened elsewhere. What is said or told here goes first. */
  hear(): Promise<void> {
    this.#isBehind = true;
    return this.catchUpWithOthers();
  }

  /** Reads what has happened elsewhere while something was said or told here. */
  async catchUpWithOthers(): Promise<void> {
    if (this.#isBehind && !this.live.isAsking) await this.read();
  }

  /** Has the history read next if the newest answer has ended: a stream does not tell the versions of messages. */
  missVersions(): void {
    const { runId, status } = this.live.sdk.lastMessage?.metadata ?? {};
    // A server may name an ended run as live for a while: the page reads once for each run, and not without end.
    if (!status || runId === this.#ended) return;
    this.#ended = runId;
    this.#isBehind = true;
  }

  /** Whether what is being said here goes first, or nobody wants to know any more. */
  get #isUntimely(): boolean {
    return this.live.said?.isUnderway || this.#closed.signal.aborted;
  }

  /** Nothing for a chat that has only the name that this page has given it. */
  async #conversation(isNewest: () => boolean): Promise<Conversation | undefined> {
    const { live } = this;
    const id = live.conversationId ?? (live.isNew ? undefined : live.sdk.id);
    return id === undefined ? undefined : this.#patiently(() => readConversation(id), isNewest);
  }

  /** What is no longer so when the history was read. What has not arrived is still to be said. */
  #quietAfter(history: ChatMessage[]): Partial<State> {
    const { live } = this;
    live.said = live.said?.after(history);
    const { problem, failed } = live.now;
    const isUnsent = live.said !== undefined && failed === "sending";
    return { ...QUIET, unsent: live.said?.unsent, ...(isUnsent ? { problem, failed } : {}) };
  }

  /** What was held is what there is, unless more has come: what should have taken its place did not. */
  #keepHeld(): void {
    const { sdk, shown } = this.live;
    if (shown.length >= sdk.messages.length) sdk.messages = shown;
  }

  async #learnVerdicts(): Promise<void> {
    const { live } = this;
    const known = live.now.verdicts;
    const verdicts = await verdictsWith(live.sdk.lastMessage, known).catch(() => known);
    // What was answered here meanwhile is known better.
    if (verdicts !== known) live.set({ verdicts: new Map([...verdicts, ...live.now.verdicts]) });
  }

  #patiently<T>(ask: () => Promise<T>, isNewest: () => boolean): Promise<T> {
    const onTrouble = (wait: number) => {
      if (isNewest()) this.live.set(reconnecting(wait));
    };
    return patiently(ask, { signal: this.#closed.signal, onTrouble, isEndless: true });
  }
}

function lengthOf({ parts }: ChatMessage): number {
  return parts.reduce((length, part) => length + (part.type === "text" ? part.text.length : 0), 0);
}

function versionOf({ last_message_at, live_run_id }: Conversation): string {
  return `${last_message_at} ${live_run_id}`;
}
