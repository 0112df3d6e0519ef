// A chat that lives as long as it is on the screen: the AI SDK's chat, and what keeps it true: the history before it, the
// stream that is taken up again, the other tabs, and the answers to what a run asks. It knows nothing of React's rendering.
import { Chat as SdkChat } from "@ai-sdk/react";
import type { UIMessageChunk } from "ai";

import { newId } from "../client/id";
import { CAUGHT_UP } from "../client/past";
import { patiently } from "../client/patience";
import { Problem, RUN_FAILED, problemFrom } from "../client/problem";
import { type Conversation, type Run, readApprovals, readConversation, readLastRun, readMessages, readRun, stopChat } from "../client/server";
import { authorization } from "../client/token";
import { HoldfastTransport } from "../client/transport";
import { onWake } from "../client/wake";
import type { Failed } from "./chat";
import type { ChatMessage } from "./message";
import { hasUnknownVerdicts, withoutQuestions, type Verdict } from "./questions";
import { initially, retryingOf, withAnswer, type State } from "./state";
import { onTold, tellTabs } from "./tabs";
import { clientTools } from "./tools";

/** How often a view hears of new text, in ms. */
export const THROTTLE_MS = 50;
/** After this long in the background, the chat may be another one. */
const AWAY_MS = 5_000;

export class LiveChat {
  readonly sdk: SdkChat<ChatMessage>;
  agentId: string | undefined;
  #state: State;
  #listeners = new Set<() => void>();
  #closed = new AbortController();
  /** Counts what has been begun: what comes of something older is of no interest. */
  #epoch = 0;
  /** Whether the server has what was said last. */
  #isAccepted = true;
  #wantsStop = false;
  /** What would be sent again. */
  #send: (() => Promise<void>) | undefined;
  /** The conversation as it was when its history was read. */
  #seen: string | undefined;

  constructor(
    readonly id: string,
    readonly isNew: boolean,
  ) {
    this.#state = initially(isNew);
    this.sdk = new SdkChat<ChatMessage>({
      id,
      generateId: newId,
      transport: this.#transport(),
      onData: ({ type }) => {
        if ((type as string) === CAUGHT_UP) this.#release(this.#epoch);
      },
      onFinish: ({ isAbort }) => {
        // A stream that was let go of goes on in another one.
        if (!isAbort) this.#set({ retrying: undefined, isReconnecting: false });
      },
      onError: (error) => void this.#fail(error),
    });
  }

  get state(): State {
    return this.#state;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Begins to live; gives back how to end it. The run goes on without us. */
  open(): () => void {
    this.#closed = new AbortController();
    const stops = [onTold((ids) => this.#hear(ids)), this.#watchAway()];
    if (!this.isNew || this.#state.conversationId) void this.read();
    return () => {
      this.#closed.abort(new DOMException("the chat was left", "AbortError"));
      this.#epoch += 1;
      stops.forEach((stop) => stop());
      void this.sdk.stop();
    };
  }

  /** Reads the history, and takes up what is being answered. */
  async read(): Promise<void> {
    const epoch = this.#begin();
    const id = this.conversationId ?? this.id;
    try {
      // Order matters: a run that ends between the two is in the history then.
      const conversation = await this.#patiently(() => readConversation(id));
      const messages = await this.#patiently(() => readMessages<ChatMessage>(id));
      if (epoch !== this.#epoch) return;
      await this.sdk.stop();
      if (epoch !== this.#epoch) return;
      this.agentId ??= conversation.agent_id ?? undefined;
      this.#seen = versionOf(conversation);
      const { live_run_id } = conversation;
      const held = live_run_id ? withAnswer(messages, this.#state.held ?? this.sdk.messages, live_run_id) : messages;
      this.sdk.messages = messages;
      this.#set({ isLoading: false, isReconnecting: false, conversationId: conversation.id, held, problem: undefined, failed: undefined });
      if (live_run_id) return void this.resume();
      this.#release(epoch);
      await this.#lookAtLastRun(conversation, messages, epoch);
    } catch (error) {
      if (epoch === this.#epoch) this.#set({ isLoading: false, isReconnecting: false, isResuming: false, held: undefined, problem: problemFrom(error), failed: "reading" });
    }
  }

  /** Has the newest answer told once more from its beginning. What is on the screen stays there until that is done. */
  async resume(): Promise<void> {
    const epoch = this.#begin();
    this.#set({ held: this.#state.held ?? this.sdk.messages, isResuming: true });
    await this.sdk.stop();
    if (epoch !== this.#epoch) return;
    await this.sdk.resumeStream();
    this.#release(epoch);
  }

  /** Says something, or has something said again. `again` is for a retry, which must not say it twice. */
  async say(first: () => Promise<void>, again: () => Promise<void>): Promise<void> {
    const epoch = this.#begin();
    this.#isAccepted = false;
    this.#wantsStop = false;
    this.#send = again;
    this.#set({ problem: undefined, failed: undefined, held: undefined, isResuming: false, isReconnecting: false, retrying: undefined });
    // A stream that is still open would write on into what comes now.
    await this.sdk.stop();
    if (epoch !== this.#epoch) return;
    this.sdk.messages = withoutQuestions(this.sdk.messages);
    await first();
  }

  retry(sayAgain: () => void): void {
    const { failed } = this.#state;
    if (failed === "sending" && this.#send) return void this.say(this.#send, this.#send);
    if (failed === "run") return sayAgain();
    void this.read();
  }

  async stop(): Promise<void> {
    if (this.isAsking && !this.#isAccepted) {
      // Who cannot reach the server has nothing to cancel there; otherwise there is a run in a moment.
      this.#wantsStop = !this.#state.isReconnecting;
      if (this.#wantsStop) return;
      await this.sdk.stop();
      return this.#set({ isReconnecting: false });
    }
    try {
      await this.#patiently(() => stopChat(this.id));
    } catch (error) {
      this.#set({ problem: problemFrom(error) });
    }
    this.#set({ isReconnecting: false });
    // A stream ends by itself, in other tabs too; a run that waited has none.
    if (this.isAsking) return;
    this.tell();
    void this.read();
  }

  /** Tells the other tabs that something has happened here. */
  tell(): void {
    tellTabs(this.conversationId ? [this.id, this.conversationId] : [this.id]);
  }

  judge(approvalId: string, verdict: Verdict): void {
    this.#set({ verdicts: new Map(this.#state.verdicts).set(approvalId, verdict) });
  }

  get isAsking(): boolean {
    return this.sdk.status === "submitted" || this.sdk.status === "streaming";
  }

  get conversationId(): string | undefined {
    return this.#state.conversationId ?? this.sdk.messages.findLast((message) => message.metadata?.conversationId)?.metadata?.conversationId;
  }

  #transport(): HoldfastTransport<ChatMessage> {
    return new HoldfastTransport<ChatMessage>({
      headers: authorization,
      // Only agents are given tools: a deployment's plain model may not know what a tool is.
      body: () => (this.agentId ? { agentId: this.agentId, clientTools } : {}),
      onAccepted: () => {
        this.#isAccepted = true;
        this.tell();
        if (this.#wantsStop) void this.stop();
      },
      onConnection: (connection) => this.#set({ isReconnecting: connection === "reconnecting" }),
      onTakenBack: (attempt) => {
        // Nobody knows why, so everything may be another one.
        if (!attempt) return void this.read();
        this.#set({ retrying: retryingOf(attempt) });
        void this.resume();
      },
      onChunk: (chunk, isPast) => {
        if (!isPast && this.#state.retrying && isContent(chunk)) this.#set({ retrying: undefined });
      },
    });
  }

  /** A chat without an answer in its history may have one that has failed. */
  async #lookAtLastRun(conversation: Conversation, messages: ChatMessage[], epoch: number): Promise<void> {
    const last = messages.at(-1);
    const runId = last?.metadata?.runId;
    if (!last || (last.role === "assistant" && (!runId || last.metadata?.usage))) return;
    const run = runId ? await readRun(runId) : await readLastRun(conversation.id);
    if (epoch !== this.#epoch || !run) return;
    if (run.status === "failed") this.#set({ problem: problemOfRun(run), failed: "run" });
  }

  async #fail(error: unknown): Promise<void> {
    const epoch = this.#epoch;
    const isRefused = error instanceof Problem;
    const failed: Failed = !isRefused ? "run" : this.#isAccepted ? "reading" : "sending";
    const problem = isRefused ? error : new Problem(0, RUN_FAILED, error instanceof Error ? error.message : String(error));
    this.#set({ problem, failed, retrying: undefined, isReconnecting: false, isResuming: false });
    const runId = this.sdk.lastMessage?.metadata?.runId;
    if (failed !== "run" || !runId) return;
    // The stream has said it in words, the run knows the code.
    const run = await readRun(runId).catch(() => undefined);
    if (epoch === this.#epoch && run?.error) this.#set({ problem: problemOfRun(run) });
  }

  /** Shows the messages again, as soon as the view has heard of the newest. */
  #release(epoch: number): void {
    void this.#learnVerdicts();
    setTimeout(() => {
      if (epoch === this.#epoch) this.#set({ held: undefined, isResuming: false });
    }, THROTTLE_MS + 10);
  }

  async #learnVerdicts(): Promise<void> {
    const message = this.sdk.lastMessage;
    const runId = message?.metadata?.runId;
    if (!message || !runId || !hasUnknownVerdicts(message, this.#state.verdicts)) return;
    for (const { id, status, reason } of await readApprovals(runId).catch(() => [])) {
      if (status !== "pending") this.judge(id, { approved: status === "approved", ...(reason ? { reason } : {}) });
    }
  }

  #hear(ids: string[]): void {
    if (ids.includes(this.id) || (this.conversationId && ids.includes(this.conversationId))) void this.read();
  }

  /** Who comes back after a while looks whether the chat is still what it was. A stream that is open looks after itself. */
  #watchAway(): () => void {
    let leftAt = Infinity;
    const leave = () => {
      if (document.visibilityState === "hidden") leftAt = Date.now();
    };
    document.addEventListener("visibilitychange", leave);
    const stop = onWake((moment) => {
      const isLong = Date.now() - leftAt > AWAY_MS;
      if (moment === "online" || isLong) void this.#look();
    });
    return () => {
      document.removeEventListener("visibilitychange", leave);
      stop();
    };
  }

  async #look(): Promise<void> {
    if (this.#state.failed === "reading") return this.read();
    const id = this.conversationId;
    if (!id || this.isAsking || this.#state.isResuming) return;
    const epoch = this.#epoch;
    const conversation = await readConversation(id).catch(() => undefined);
    if (!conversation || epoch !== this.#epoch || versionOf(conversation) === this.#seen) return;
    await this.read();
  }

  #patiently<T>(ask: () => Promise<T>): Promise<T> {
    return patiently(ask, { signal: this.#closed.signal, onTrouble: () => this.#set({ isReconnecting: true }) });
  }

  #begin(): number {
    this.#epoch += 1;
    return this.#epoch;
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    this.#listeners.forEach((listener) => listener());
  }
}

function versionOf({ last_message_at, live_run_id }: Conversation): string {
  return `${last_message_at} ${live_run_id}`;
}

function problemOfRun({ error }: Run): Problem {
  return new Problem(0, error?.code ?? RUN_FAILED, error?.message ?? "");
}

/** Whether something of the answer itself has come. */
function isContent({ type }: UIMessageChunk): boolean {
  return type.endsWith("-delta") || type.startsWith("tool-");
}
