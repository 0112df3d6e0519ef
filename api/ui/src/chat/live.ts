// A live chat exists as long as it is on the screen: it is the AI SDK's chat on Holdfast's transport, and the engine
// beside it. It turns the reader's wishes and the stream's events into the reducer's events; it knows nothing of React's
// rendering.
import { Chat as SdkChat } from "@ai-sdk/react";
import type { UIMessageChunk } from "ai";
import { CAUGHT_UP } from "holdfast-client/ai-sdk/past";
import { HoldfastTransport, type Question } from "holdfast-client/ai-sdk/transport";
import { newId } from "holdfast-client/id";
import { type Patience, patiently } from "holdfast-client/patience";
import { Problem } from "holdfast-client/problem";

import type { AgentContext } from "../client/context";
import { type Content, type FileRef, contentOf, postFirst, postNext } from "../client/files";
import { bringToolResult, decideApproval, restoreMessage, takeBack } from "../client/server";
import { authorization } from "../client/token";
import { onReturn } from "./away";
import type { Decision, Outcome, Posting, ToolAnswer, Unsent, WaitingMessage, WaitingMode } from "./chat";
import { Effects, type Stage } from "./effects";
import { filesOf, serverIdOf } from "./files";
import { type ChatMessage, textOf } from "./message";
import type { Verdict } from "./questions";
import { type Event, reduce } from "./reducer";
import { canSend, conversationOf, initially, progressOf, type State, unsentOf } from "./state";
import { chatTabs } from "./tabs";
import { clientTools } from "./tools";
import { isOf, newAnswer, newEdit, newMessage, postingOf } from "./utterance";

/** The open chat, and chats that the reader left while a message was in flight to the server. */
const alive = new Set<LiveChat>();

const isSending = ({ now }: LiveChat) => now.phase === "sending";
const isInFlight = (chat: LiveChat) => isSending(chat) || chat.now.posting.some(({ state }) => state !== "refused");

/** Returns the new chat whose first message the server does not have yet. */
export function unsentNewChat(): string | undefined {
  return [...alive].find((chat) => isSending(chat) && chat.isNew && !chat.conversationId)?.sdk.id;
}

/** Drops the messages in flight: another reader must not send them. */
export function giveUpUnsent(): void {
  alive.forEach((chat) => chat.giveUp());
  alive.clear();
}

export class LiveChat implements Stage {
  readonly sdk: SdkChat<ChatMessage>;
  now: State;
  /** The next messages name this context. */
  context?: AgentContext;
  /** Makes the conversation of a new chat before its first message, and returns its id. */
  begin?: (agentId: string | undefined) => Promise<string>;
  readonly #effects = new Effects(this);
  readonly #listeners = new Set<() => void>();
  /** The answers that this page has sent without learning whether they arrived. */
  readonly #unsure = new Set<string>();
  /** Each ends the tries of a posting, by its id. */
  readonly #flights = new Map<string, AbortController>();
  /** Resolves when no posting is in flight: they arrive in their order. */
  #posted: Promise<void> = Promise.resolve();
  /** The newest posting that its writer has again. */
  #withdrawn?: Posting;
  /** The conversation that the server has made without the chat's id. */
  #made?: string;

  /** Returns the chat of this id: the existing one, if a message in it is still in flight. */
  static of(id: string, isNew: boolean): LiveChat {
    const known = [...alive].find((chat) => isInFlight(chat) && (chat.sdk.id === id || chat.conversationId === id));
    return known ?? new LiveChat(id, isNew);
  }

  constructor(
    id: string,
    readonly isNew: boolean,
  ) {
    this.now = initially(isNew);
    this.sdk = new SdkChat<ChatMessage>({
      id,
      generateId: newId,
      transport: this.#transport(),
      onData: (part) => {
        if ((part.type as string) === CAUGHT_UP) void this.dispatch({ type: "caught-up" });
        if (part.type === "data-state") void this.dispatch({ type: "activity", doing: part.data.state });
        if (part.type === "data-steered") void this.dispatch({ type: "steered", messageId: part.data.message_id });
      },
      // An aborted stream continues in another one.
      onFinish: ({ isAbort, isError }) => void (isAbort || this.dispatch({ type: "ended", isError })),
      onError: (error) => void this.dispatch({ type: "failed", error }),
    });
  }

  get conversationId(): string | undefined {
    return conversationOf(this.now, this.sdk);
  }

  /** The chat's name for the server. */
  get name(): string {
    return this.#made ?? this.sdk.id;
  }

  /** Resolves when the effects of the event have ended. */
  async dispatch(event: Event): Promise<void> {
    const [state, effects] = reduce(this.now, event, this.sdk);
    this.now = state;
    this.#listeners.forEach((listener) => listener());
    await Promise.all(effects.map((effect) => this.#effects.do(effect)));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Opens the chat and returns a function that closes it. The run continues without the page, and the close waits for a
   * message in flight.
   */
  open(): () => void {
    const stops = [chatTabs.onNotice(({ ids, isDeleted }) => isDeleted || this.#hear(ids)), onReturn(() => void this.dispatch({ type: "returned" }))];
    alive.add(this);
    this.#effects.open();
    void this.dispatch({ type: "opened", isNew: this.isNew });
    return () => {
      this.#effects.close();
      void this.dispatch({ type: "closed" });
      stops.forEach((stop) => stop());
      void this.settled().then(() => this.now.isClosed && this.#end());
    };
  }

  send(text: string, files: FileRef[] = []): boolean {
    if (isBlank(text, files) || !canSend(progressOf(this.now, this.sdk))) return false;
    // A repeated text may have arrived the first time.
    const utterance = isOf(this.now.unsent, text, files) ? this.now.unsent : newMessage(text, files);
    void this.dispatch({ type: "said", utterance });
    return true;
  }

  post(text: string, mode: WaitingMode, files: FileRef[] = []): Promise<void> {
    // A repeated text may have arrived the first time.
    const posting = { context: this.context, ...postingOf(this.#withdrawn, text, mode, files) };
    const flight = new AbortController();
    this.#flights.set(posting.id, flight);
    void this.dispatch({ type: "posting", posting });
    return (this.#posted = this.#posted.then(() => this.#deliver(posting, flight.signal)));
  }

  async #deliver(posting: Posting, signal: AbortSignal): Promise<void> {
    const { conversationId } = this;
    const { id, text, files = [], mode, context } = posting;
    const change = (state: Posting["state"]) => void this.dispatch({ type: "posting", posting: { ...posting, state } });
    if (signal.aborted) return;
    if (conversationId === undefined) return change("refused");
    const patience: Patience = { signal, onTrouble: () => change("held"), isEndless: true, isFinal: ({ status }) => status === 429 };
    try {
      const { message, run } = await patiently(() => postNext(id, conversationId, { content: contentOf(text, files), mode, context }), patience);
      if (this.#withdrawn?.id === id) this.#withdrawn = undefined;
      await this.dispatch({ type: "posted", id, message: { id: message.id, runId: run.id, text, ...(files.length > 0 ? { files } : {}), mode } });
    } catch {
      if (!signal.aborted) change("refused");
    } finally {
      this.#flights.delete(id);
    }
  }

  async takeBack<Message extends WaitingMessage | Posting>(message: Message): Promise<Message | undefined> {
    if (!("runId" in message)) {
      this.#flights.get(message.id)?.abort(new DOMException("the message was taken back", "AbortError"));
      this.#withdrawn = message;
      void this.dispatch({ type: "withdrawn", id: message.id });
      return message;
    }
    try {
      await takeBack(message.runId);
    } catch (error) {
      if (error instanceof Problem && error.code === "run_begun") return undefined;
      throw error;
    }
    await this.dispatch({ type: "taken-back", messageId: message.id });
    return message;
  }

  edit(messageId: string, text: string, files: FileRef[] = []): void {
    if (isBlank(text, files)) return;
    const utterance = isOf(this.now.unsent, text, files, messageId) ? this.now.unsent : newEdit(messageId, text, files);
    void this.dispatch({ type: "said", utterance });
  }

  regenerate(messageId?: string): void {
    void this.dispatch({ type: "said", utterance: newAnswer(messageId) });
  }

  retry(): void {
    const { failure, unsent } = this.now;
    if (failure?.failed === "sending" && unsent) return void this.dispatch({ type: "said", utterance: unsent });
    if (failure?.failed === "run") return this.regenerate();
    void this.dispatch({ type: "read" });
  }

  decide(message: ChatMessage, approvalId: string, decision: Decision): Promise<Outcome> {
    const give = (runId: string) => decideApproval(runId, approvalId, wireOf(decision));
    return this.#give(message, approvalId, give, { approvalId, verdict: verdictOf(decision) });
  }

  answer(message: ChatMessage, callId: string, outcome: ToolAnswer): Promise<Outcome> {
    return this.#give(message, callId, (runId) => bringToolResult(runId, callId, outcome), { callId, outcome });
  }

  /**
   * Resolves when the page has read the history again. If it rejects with a `Problem`, the page reads the history, too:
   * the server may have restored the version nevertheless, or another tab was first.
   */
  async restore(versionId: string): Promise<void> {
    const { conversationId } = this;
    // A restoration cancels the run that works or waits.
    if (conversationId === undefined || progressOf(this.now, this.sdk) !== "idle") return;
    const [restored] = await Promise.allSettled([restoreMessage(conversationId, versionId)]);
    const isRead = this.dispatch({ type: "restored" });
    if (restored.status === "rejected") throw restored.reason;
    await isRead;
  }

  /**
   * Resolves as soon as no message is in flight to the server, with those in flight now that the server does not have.
   * `wasSending` is what the caller knows of the newest message, which may have been refused just now.
   */
  settled(wasSending = isSending(this)): Promise<Unsent[]> {
    return new Promise((resolve) => {
      const check = () => {
        if (isInFlight(this)) return;
        stop();
        const unsent = wasSending && unsentOf(this.now);
        resolve([...(unsent ? [unsent] : []), ...this.now.posting.map(({ text, files }) => ({ text, files, isUnderway: false }))]);
      };
      const stop = this.subscribe(check);
      check();
    });
  }

  /** Sends an answer. The first one counts; a reader whose answer comes second sees that another page was first. */
  async #give({ metadata }: ChatMessage, questionId: string, give: (runId: string) => Promise<unknown>, answer: Extract<Event, { type: "answered" }>["answer"]): Promise<Outcome> {
    const runId = metadata?.runId;
    if (!runId) throw new Problem(0, "run_not_waiting", "This message has no run.");
    try {
      await give(runId);
    } catch (error) {
      if (error instanceof Problem && error.status === 0) this.#unsure.add(questionId);
      if (!(error instanceof Problem) || error.status !== 409) throw error;
      void this.dispatch({ type: "changed" });
      return this.#unsure.has(questionId) ? "done" : "answered elsewhere";
    }
    void this.dispatch({ type: "answered", runId, answer });
    return "done";
  }

  /** Posts a question with files, which the chat's own route does not take. */
  async #ask({ message, messageId, key, signal }: Question<ChatMessage>): Promise<string | undefined> {
    const onTrouble = (wait: number) => void this.dispatch({ type: "disconnected", wait });
    // The writer decides about a message that the server limits.
    const patience: Patience = { signal, onTrouble, isEndless: true, isFinal: ({ status }) => status === 429 };
    const { begin } = this;
    if (begin && this.isNew && this.conversationId === undefined) await this.#nameIt(await patiently(() => begin(this.now.agentId), patience));
    const files = filesOf(message);
    if (files.length === 0) return undefined;
    const content = contentOf(textOf(message), files);
    const conversationId = this.conversationId ?? (this.isNew ? undefined : this.sdk.id);
    let replaced: string | undefined;
    const post = async () => {
      // All tries name one message: after the first that arrives, the conversation no longer has it.
      if (conversationId !== undefined && messageId !== undefined) replaced ??= await serverIdOf(conversationId, messageId);
      return this.#post(key, content, message.id, conversationId, replaced);
    };
    return patiently(post, patience);
  }

  async #post(key: string, content: Content, id: string, conversationId: string | undefined, replace_from: string | undefined): Promise<string> {
    const agent = this.now.agentId;
    const named = { context: this.context, ...(agent ? { client_tools: clientTools.map(({ inputSchema, ...tool }) => ({ ...tool, input_schema: inputSchema })) } : {}) };
    const { message, run } = await (conversationId === undefined ? postFirst(key, { ...named, input: content, agent_id: agent }) : postNext(key, conversationId, { ...named, content, replace_from }));
    if (conversationId === undefined) await this.#nameIt(run.conversation_id);
    this.sdk.messages = this.sdk.messages.map((own) => (own.id === id ? { ...own, id: message.id } : own));
    return run.id;
  }

  async #nameIt(conversationId: string): Promise<void> {
    this.#made = conversationId;
    await this.dispatch({ type: "named", conversationId });
  }

  /** Drops the messages in flight. */
  giveUp(): void {
    this.#flights.forEach((flight) => flight.abort(new DOMException("the message was given up", "AbortError")));
    void this.dispatch({ type: "given-up" });
  }

  #end(): void {
    alive.delete(this);
    void this.dispatch({ type: "given-up" });
  }

  #transport(): HoldfastTransport<ChatMessage> {
    return new HoldfastTransport<ChatMessage>({
      headers: authorization,
      // Only agents receive tools: a deployment's plain model may not know tools.
      body: () => ({ ...(this.isNew && this.conversationId === undefined ? {} : { mustExist: true }), ...(this.now.agentId ? { agentId: this.now.agentId, clientTools } : {}), ...(this.context ? { context: this.context } : {}) }),
      name: () => this.name,
      ask: (question) => this.#ask(question as Question<ChatMessage>),
      onAccepted: (runId) => void this.dispatch({ type: "accepted", runId }),
      isEndless: true,
      onConnection: (connection, wait) => {
        if (connection === "reconnecting") return void this.dispatch({ type: "disconnected", wait });
        this.#effects.connected();
        void this.dispatch({ type: "connected" });
      },
      onTakenBack: (attempt) => void this.dispatch({ type: "superseded", attempt }),
      onChunk: (chunk, isPast) => {
        const { held, retrying } = this.now;
        if (!isPast && (held || retrying) && isContent(chunk)) void this.dispatch({ type: "content" });
      },
    });
  }

  #hear(ids: string[]): void {
    if (!ids.includes(this.sdk.id) && !ids.includes(this.conversationId ?? "")) return;
    void this.dispatch({ type: "changed", isByOtherTab: true });
  }
}

function isBlank(text: string, files: FileRef[]): boolean {
  return text.trim() === "" && files.length === 0;
}

/** Whether the chunk is content of the answer itself. */
function isContent({ type }: UIMessageChunk): boolean {
  return type.endsWith("-delta") || type.startsWith("tool-");
}

function wireOf(decision: Decision): Parameters<typeof decideApproval>[2] {
  if (decision.decision === "deny") return { decision: "deny", reason: decision.reason || undefined };
  return { decision: "approve", edited_input: decision.editedInput };
}

function verdictOf(decision: Decision): Verdict {
  if (decision.decision === "approve") return { approved: true, ...(decision.editedInput === undefined ? {} : { isEdited: true }) };
  return { approved: false, ...(decision.reason ? { reason: decision.reason } : {}) };
}
