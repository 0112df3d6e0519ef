// A chat that lives as long as it is on the screen: the AI SDK's chat, and what keeps it true: the history before it, the
// stream that is taken up again, the other tabs, and the answers to what a run asks. It knows nothing of React's rendering.
import { Chat as SdkChat } from "@ai-sdk/react";
import type { UIMessageChunk } from "ai";

import { newId } from "../client/id";
import { CAUGHT_UP } from "../client/past";
import { patiently } from "../client/patience";
import { Problem, RUN_FAILED, UNREACHABLE, problemFrom } from "../client/problem";
import { type Conversation, readConversation, readMessages, stopChat } from "../client/server";
import { authorization } from "../client/token";
import { HoldfastTransport } from "../client/transport";
import { onReturn } from "./away";
import type { Failed } from "./chat";
import type { ChatMessage } from "./message";
import { failureOf, verdictsWith } from "./outcome";
import { withoutQuestions, type Verdict } from "./questions";
import { initially, retryingOf, withAnswer, type State } from "./state";
import { onTold, tellTabs } from "./tabs";
import { clientTools } from "./tools";

/** How often a view hears of new text, in ms. */
export const THROTTLE_MS = 50;

/** What is no longer so when something new begins. */
const QUIET: Partial<State> = { isLoading: false, doing: undefined, isReconnecting: false, problem: undefined, failed: undefined };

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
  /** Whether the newest stream was there, and how often one after the other it was not. */
  #hasStream = false;
  #vain = 0;
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
      onData: (part) => {
        if ((part.type as string) === CAUGHT_UP) this.#release(this.#epoch);
        if (part.type === "data-state") this.#set({ doing: part.data.state });
      },
      onFinish: ({ isAbort }) => {
        // A stream that was let go of goes on in another one.
        if (!isAbort) this.#set({ retrying: undefined, isReconnecting: false });
      },
      onError: (error) => this.#fail(error),
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
    const stops = [onTold((ids) => this.#hear(ids)), onReturn(() => void this.#look())];
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
      this.#set({ ...QUIET, conversationId: conversation.id, held });
      if (live_run_id) return void this.resume();
      this.#release(epoch);
      const failure = failureOf(messages.at(-1));
      if (failure) this.#set({ problem: failure, failed: "run" });
    } catch (error) {
      if (epoch === this.#epoch) this.#set({ ...QUIET, isResuming: false, held: undefined, problem: problemFrom(error), failed: "reading" });
    }
  }

  /** Has the newest answer told once more from its beginning. What is on the screen stays there until that is done. */
  async resume(): Promise<void> {
    const epoch = this.#begin();
    this.#set({ held: this.#state.held ?? this.sdk.messages, isResuming: true });
    await this.sdk.stop();
    if (epoch !== this.#epoch) return;
    this.#hasStream = false;
    await this.sdk.resumeStream();
    if (epoch !== this.#epoch) return;
    // It has ended since one has looked, and the history has it.
    const isOver = !this.#hasStream && this.sdk.status === "ready" && this.#vain < 2;
    this.#vain = isOver ? this.#vain + 1 : 0;
    if (isOver) return this.read();
    this.#release(epoch);
  }

  /** Says something, or has something said again. `again` is for a retry, which must not say it twice. */
  async say(first: () => Promise<void>, again: () => Promise<void>): Promise<void> {
    const epoch = this.#begin();
    this.#isAccepted = false;
    this.#wantsStop = false;
    this.#send = again;
    this.#set({ ...QUIET, isResuming: false, held: undefined, retrying: undefined });
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
      const problem = new Problem(0, UNREACHABLE, "It was not sent.");
      return this.#set({ isReconnecting: false, problem, failed: "sending" });
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
    return this.#state.isResuming || this.sdk.status === "submitted" || this.sdk.status === "streaming";
  }

  get conversationId(): string | undefined {
    const told = this.sdk.messages.findLast(({ metadata }) => metadata?.conversationId);
    return this.#state.conversationId ?? told?.metadata?.conversationId;
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
      onConnection: (connection) => {
        this.#hasStream ||= connection === "connected";
        this.#set({ isReconnecting: connection === "reconnecting" });
      },
      onTakenBack: (attempt) => {
        this.#set({ held: this.#state.held ?? this.sdk.messages, isResuming: true, retrying: retryingOf(attempt) });
        // Where nobody knows why, everything may be another one.
        void (attempt ? this.resume() : this.read());
      },
      onChunk: (chunk, isPast) => {
        if (!isPast && this.#state.retrying && isContent(chunk)) this.#set({ retrying: undefined });
      },
    });
  }

  #fail(error: unknown): void {
    const isRefused = error instanceof Problem;
    const failed: Failed = !isRefused ? "run" : this.#isAccepted ? "reading" : "sending";
    const told = () => new Problem(0, RUN_FAILED, error instanceof Error ? error.message : String(error));
    const problem = isRefused ? error : (failureOf(this.sdk.lastMessage) ?? told());
    this.#set({ problem, failed, retrying: undefined, isReconnecting: false, isResuming: false });
  }

  /** Shows the messages again, as soon as the view has heard of the newest. */
  #release(epoch: number): void {
    void this.#learnVerdicts();
    setTimeout(() => {
      if (epoch === this.#epoch) this.#set({ held: undefined, isResuming: false });
    }, THROTTLE_MS + 10);
  }

  async #learnVerdicts(): Promise<void> {
    const verdicts = await verdictsWith(this.sdk.lastMessage, this.#state.verdicts).catch(() => this.#state.verdicts);
    if (verdicts !== this.#state.verdicts) this.#set({ verdicts });
  }

  #hear(ids: string[]): void {
    if (!ids.includes(this.id) && !(this.conversationId && ids.includes(this.conversationId))) return;
    // What is being said here goes first; the rest is found on the next look.
    if (this.isAsking && !this.#isAccepted) this.#seen = undefined;
    else void this.read();
  }

  /** Whether the chat is still what it was. A stream that is open looks after itself. */
  async #look(): Promise<void> {
    if (this.#state.failed === "reading") return this.read();
    const id = this.conversationId;
    if (!id || this.isAsking) return;
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

/** Whether something of the answer itself has come. */
function isContent({ type }: UIMessageChunk): boolean {
  return type.endsWith("-delta") || type.startsWith("tool-");
}
