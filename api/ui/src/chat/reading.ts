// Reading what the server has of a chat: its history, and the answer that is being made, from its beginning. What is on the
// screen stays there until what is read can take its place.
import { patiently } from "../client/patience";
import { problemFrom } from "../client/problem";
import { type Conversation, readConversation, readMessages } from "../client/server";
import { type LiveState, QUIET, THROTTLE_MS } from "./liveState";
import type { ChatMessage } from "./message";
import { failureOf, verdictsWith } from "./outcome";
import { type State, withAnswer } from "./state";

export class Reading {
  /** Whether the newest stream was there, and how often one after the other it was not. */
  hasStream = false;
  #vain = 0;
  /** The conversation as it was when its history was read. */
  #seen: string | undefined;
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
    const isNewest = live.begin();
    try {
      // Order matters: a run that ends between the two is in the history then.
      const conversation = await this.#conversation();
      const messages = await this.#patiently(() => readMessages<ChatMessage>(conversation?.id ?? live.sdk.id));
      if (!isNewest()) return;
      await live.sdk.stop();
      if (!isNewest()) return;
      live.agentId ??= conversation?.agent_id ?? undefined;
      this.#seen = conversation && versionOf(conversation);
      const runId = conversation?.live_run_id;
      const held = runId ? withAnswer(messages, live.shown, runId) : messages;
      live.sdk.messages = messages;
      live.set({ ...this.#quietAfter(messages), conversationId: conversation?.id, held });
      // A chat that has no name yet may be at work all the same, if there is something in it.
      if (runId || (!conversation && messages.length > 0)) return void this.resume();
      this.release(isNewest);
      const failure = failureOf(messages.at(-1));
      if (failure && !live.now.problem) live.set({ problem: failure, failed: "run" });
    } catch (error) {
      if (!isNewest()) return;
      this.#keepHeld();
      live.set({ ...QUIET, problem: problemFrom(error), failed: "reading" });
      this.release(isNewest);
    }
  }

  /** Has the newest answer told once more from its beginning. */
  async resume(): Promise<void> {
    const { live } = this;
    const isNewest = live.begin();
    this.hold();
    await live.sdk.stop();
    if (!isNewest()) return;
    this.hasStream = false;
    await live.sdk.resumeStream();
    if (!isNewest()) return;
    // It has ended since one has looked, and the history has it.
    const isOver = !this.hasStream && live.sdk.status === "ready" && this.#vain < 2;
    this.#vain = isOver ? this.#vain + 1 : 0;
    if (isOver) return this.read();
    if (live.sdk.status === "error" && live.now.failed === "reading") this.#keepHeld();
    this.release(isNewest);
  }

  /** Shows what is shown now while the messages are rebuilt. */
  hold(): void {
    this.live.set({ held: this.live.shown, isResuming: true });
  }

  /** Shows the messages again, unless the newest says less than it did: a slow network may pause in the middle of the past. */
  catchUp(): void {
    const { now, sdk } = this.live;
    const held = now.held?.at(-1);
    const told = sdk.lastMessage;
    const isSame = held && told && held.role === "assistant" && held.metadata?.runId === told.metadata?.runId;
    const isBehind = isSame && lengthOf(told) < lengthOf(held);
    if (!isBehind || now.retrying) this.release(this.live.watch());
  }

  /** Shows the messages again, as soon as the view has heard of the newest. */
  release(isNewest: () => boolean): void {
    void this.#learnVerdicts();
    setTimeout(() => {
      if (isNewest()) this.live.set({ held: undefined, isResuming: false });
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
    if (!conversation || !isNewest() || versionOf(conversation) === this.#seen) return;
    await this.read();
  }

  /** Has the next look read, whatever it sees. */
  forget(): void {
    this.#seen = undefined;
  }

  /** Nothing for a chat that has only the name that this page has given it. */
  async #conversation(): Promise<Conversation | undefined> {
    const { live } = this;
    const id = live.conversationId ?? (live.isNew ? undefined : live.sdk.id);
    return id === undefined ? undefined : this.#patiently(() => readConversation(id));
  }

  /** What is no longer so when the history was read. What has not arrived is still to be said. */
  #quietAfter(history: ChatMessage[]): Partial<State> {
    const { live } = this;
    if (live.said?.isIn(history)) live.said = undefined;
    const { problem, failed, unsent } = live.now;
    const isUnsent = live.said !== undefined && failed === "sending";
    return { ...QUIET, unsent: live.said && unsent, ...(isUnsent ? { problem, failed } : {}) };
  }

  /** What was held is what there is, unless more has come: what should have taken its place did not. */
  #keepHeld(): void {
    const { sdk, shown } = this.live;
    if (shown.length >= sdk.messages.length) sdk.messages = shown;
  }

  async #learnVerdicts(): Promise<void> {
    const { live } = this;
    const verdicts = await verdictsWith(live.sdk.lastMessage, live.now.verdicts).catch(() => live.now.verdicts);
    if (verdicts !== live.now.verdicts) live.set({ verdicts });
  }

  #patiently<T>(ask: () => Promise<T>): Promise<T> {
    return patiently(ask, { signal: this.#closed.signal, onTrouble: () => this.live.set({ isReconnecting: true }) });
  }
}

function lengthOf({ parts }: ChatMessage): number {
  return parts.reduce((length, part) => length + (part.type === "text" ? part.text.length : 0), 0);
}

function versionOf({ last_message_at, live_run_id }: Conversation): string {
  return `${last_message_at} ${live_run_id}`;
}
