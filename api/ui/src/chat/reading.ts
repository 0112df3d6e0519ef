// This file reads the server's state of a chat: its history, and the current answer from its beginning. The screen
// keeps its messages until the new ones can replace them.
import { patiently } from "../client/patience";
import { problemFrom } from "../client/problem";
import { type Conversation, readConversation, readMessages } from "../client/server";
import { type LiveState, QUIET, THROTTLE_MS } from "./liveState";
import type { ChatMessage } from "./message";
import { failureOf, verdictsWith } from "./outcome";
import { type State, reconnecting, withAnswer } from "./state";

export class Reading {
  /** Whether the newest stream existed, and how many consecutive streams were missing or had another answer. */
  hasStream = false;
  #vain = 0;
  /** The run whose answer a resumed stream must bring, as long as the page holds its messages. */
  #wanted: string | undefined;
  /** Whether a read is the newest operation: it replaces all messages itself. */
  #isReading = () => false;
  /** The conversation's version when the page read its history. */
  #seen: string | undefined;
  /** Whether the page has not yet read a change. */
  #isBehind = false;
  /** The run whose versions the page has read, or will read, after the run's end. */
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

  /** Reads the history, and resumes the current answer. */
  async read(): Promise<void> {
    const { live } = this;
    this.#isBehind = true;
    if (this.#isUntimely) return;
    const isNewest = (this.#isReading = live.begin());
    try {
      // Order matters: the history then includes a run that ends between the two requests.
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
      // Even a chat without a name may have a live run, if its newest answer has not ended.
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

  /** Replays the newest answer from its beginning: this run's, unless another answer already waits for its turn. */
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
    // The answer has ended since the last look, and the history has it.
    const isThere = this.hasStream && (!runId || live.sdk.lastMessage?.metadata?.runId === runId);
    const isOver = !isThere && live.sdk.status === "ready" && this.#vain < 2;
    this.#vain = isOver ? this.#vain + 1 : 0;
    if (isOver) return this.read();
    // Only the history says whether the run has made another version of an answer.
    if (isThere) this.missVersions();
    if (live.sdk.status === "error" && live.now.failed === "reading") this.#keepHeld();
    this.release(isNewest);
  }

  /** Keeps the current messages on the screen while the SDK rebuilds them. */
  hold(): void {
    this.live.set({ held: this.live.shown, isResuming: true });
  }

  /**
   * Shows the messages again, unless the newest is shorter than before: a slow network may pause in the middle of the
   * past.
   */
  catchUp(): void {
    // Each chunk would restart the read, and no read would end before the stream.
    if (this.#isReading()) return;
    const { now, sdk } = this.live;
    const held = now.held?.at(-1);
    const newest = sdk.lastMessage;
    if (this.#wanted && held?.metadata?.runId === this.#wanted && newest?.metadata?.runId !== this.#wanted) return this.#takeTurns(newest);
    const isSame = held && newest && held.role === "assistant" && held.metadata?.runId === newest.metadata?.runId;
    const isBehind = isSame && lengthOf(newest) < lengthOf(held);
    if (!isBehind || now.retrying) this.release(this.live.watch());
  }

  /**
   * Another answer waits for its turn after the shown one. When it has begun, the shown one is complete, and the
   * history has it.
   */
  #takeTurns(next: ChatMessage | undefined): void {
    if (next?.role === "assistant" && next.parts.length > 0) void this.read();
  }

  /** Shows the messages again, as soon as the view has received the newest one. */
  release(isNewest: () => boolean): void {
    this.#wanted = undefined;
    void this.#learnVerdicts();
    setTimeout(() => {
      if (!isNewest()) return;
      this.live.set({ held: undefined, isResuming: false });
      void this.catchUpWithOthers();
    }, THROTTLE_MS + 10);
  }

  /** Reads the chat if it has changed. An open stream needs no look. */
  async look(): Promise<void> {
    const { live } = this;
    const { failed, problem } = live.now;
    // The page does not know whether the server has the unsent message.
    if (failed === "reading" || (failed === "sending" && problem?.status === 0)) return this.read();
    const id = live.conversationId;
    if (!id || live.isAsking || live.utterance?.isUnderway) return;
    const isNewest = live.watch();
    const conversation = await readConversation(id).catch(() => undefined);
    if (!conversation || !isNewest() || (!this.#isBehind && versionOf(conversation) === this.#seen)) return;
    await this.read();
  }

  /** The chat has changed elsewhere. The messages and answers of this page come first. */
  hear(): Promise<void> {
    this.#isBehind = true;
    return this.catchUpWithOthers();
  }

  /** Reads the changes from elsewhere, which had to wait for a message or an answer of this page. */
  async catchUpWithOthers(): Promise<void> {
    if (this.#isBehind && !this.live.isAsking) await this.read();
  }

  /**
   * Marks the history for the next read if the newest answer has ended: a stream does not have the versions of
   * messages.
   */
  missVersions(): void {
    const { runId, status } = this.live.sdk.lastMessage?.metadata ?? {};
    // A server may name an ended run as live for a while. The page therefore reads once for each run, and does not
    // repeat without end.
    if (!status || runId === this.#ended) return;
    this.#ended = runId;
    this.#isBehind = true;
  }

  /** Whether a message of this page comes first, or the reader has left the chat. */
  get #isUntimely(): boolean {
    return this.live.utterance?.isUnderway || this.#closed.signal.aborted;
  }

  /** Resolves with nothing for a chat that has only the name that this page has given it. */
  async #conversation(isNewest: () => boolean): Promise<Conversation | undefined> {
    const { live } = this;
    const id = live.conversationId ?? (live.isNew ? undefined : live.sdk.id);
    return id === undefined ? undefined : this.#patiently(() => readConversation(id), isNewest);
  }

  /** Returns the fields that a read of the history resets. It keeps a message that has not arrived. */
  #quietAfter(history: ChatMessage[]): Partial<State> {
    const { live } = this;
    live.utterance = live.utterance?.after(history);
    const { problem, failed } = live.now;
    const isUnsent = live.utterance !== undefined && failed === "sending";
    return { ...QUIET, unsent: live.utterance?.unsent, ...(isUnsent ? { problem, failed } : {}) };
  }

  /** Makes the held messages the current ones again, unless the SDK has more: their replacement failed. */
  #keepHeld(): void {
    const { sdk, shown } = this.live;
    if (shown.length >= sdk.messages.length) sdk.messages = shown;
  }

  async #learnVerdicts(): Promise<void> {
    const { live } = this;
    const known = live.now.verdicts;
    const verdicts = await verdictsWith(live.sdk.lastMessage, known).catch(() => known);
    // A verdict that this page gave meanwhile wins.
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
