// This file sends messages in a chat, and stops their answers. A refusal changes nothing: the messages are as they
// were, and the writer gets the text back.
import { Problem, RUN_FAILED, UNREACHABLE, problemFrom } from "../client/problem";
import { type LiveState, QUIET } from "./liveState";
import { failureOf } from "./outcome";
import type { Reading } from "./reading";
import { canSend, reconnecting } from "./state";
import { Stopping } from "./stopping";
import { Utterance } from "./utterance";

export class Speaking {
  readonly #stopping = new Stopping();

  constructor(
    readonly live: LiveState,
    readonly reading: Reading,
  ) {}

  send(text: string): boolean {
    const { sdk, progress } = this.live;
    if (text.trim() === "" || !canSend(progress)) return false;
    void this.#say(this.#repeated(text) ?? Utterance.message(sdk, text));
    return true;
  }

  edit(messageId: string, text: string): void {
    if (text.trim() === "") return;
    void this.#say(this.#repeated(text, messageId) ?? Utterance.edit(this.live.sdk, messageId, text));
  }

  regenerate(messageId?: string): void {
    void this.#say(Utterance.regenerate(this.live.sdk, messageId));
  }

  retry(): void {
    const { utterance, now } = this.live;
    if (now.failed === "sending" && utterance) return void this.#say(utterance);
    if (now.failed === "run") return this.regenerate();
    void this.reading.read();
  }

  dismiss(): void {
    const { live } = this;
    if (live.now.failed !== "sending") return;
    live.utterance = undefined;
    live.set({ problem: undefined, failed: undefined, unsent: undefined });
  }

  async stop(): Promise<void> {
    const { live } = this;
    if (live.utterance?.isUnderway) return this.#stopUnsent(live.utterance);
    try {
      const isDone = await this.#stopping.cancel(live.sdk.id, (wait) => live.set(reconnecting(wait)));
      if (!isDone) return;
    } catch (error) {
      live.set({ problem: problemFrom(error), failed: "reading" });
    }
    live.set({ isReconnecting: false, nextTryAt: undefined });
    // An open stream ends by itself, in other tabs too; a run that waited has none.
    if (!live.isAsking) this.#readAll();
  }

  /** The run to stop no longer exists, or another one has replaced it. */
  dropStop(): void {
    this.#stopping.drop();
  }

  /** The server has taken the message. */
  accept(): void {
    const { live } = this;
    const { utterance } = live;
    live.utterance = undefined;
    live.set({ unsent: undefined });
    live.tell();
    if (utterance?.wantsStop) void this.stop();
  }

  fail(error: unknown): void {
    const { live } = this;
    const isRefusal = error instanceof Problem;
    const failure = isRefusal ? error : new Problem(0, RUN_FAILED, error instanceof Error ? error.message : String(error));
    if (live.utterance?.isUnderway) {
      this.#refuse(live.utterance, failure);
      // The server has the question of a failed run, so the page reads the rest from the history.
      if (failure.run) void this.reading.hear();
      return;
    }
    const problem = isRefusal ? failure : (failureOf(live.sdk.lastMessage) ?? failure);
    live.set({ problem, failed: isRefusal ? "reading" : "run", retrying: undefined, isReconnecting: false, isResuming: false });
  }

  async #say(utterance: Utterance): Promise<void> {
    const { live } = this;
    const isNewest = live.begin();
    this.dropStop();
    if (!this.#isBegun) live.agentId = live.wantedAgentId;
    live.utterance = utterance;
    utterance.wantsStop = false;
    utterance.isUnderway = true;
    // The state keeps the conversation's id, because the answer that brought it may disappear.
    live.set({ ...QUIET, unsent: utterance.unsent, conversationId: live.conversationId });
    // An open stream would continue to write into the new messages.
    await live.sdk.stop();
    if (!isNewest()) return;
    const { shown } = live;
    if (live.now.isResuming || live.now.held) this.reading.release(isNewest);
    await utterance.say(shown).catch((error: unknown) => this.fail(error));
    if (!isNewest()) return;
    if (live.utterance === utterance) utterance.takeBack();
    else if (utterance.isVersion) this.reading.missVersions();
    void this.reading.catchUpWithOthers();
  }

  /** A repeated text may have arrived the first time. */
  #repeated(text: string, instead?: string): Utterance | undefined {
    const { utterance } = this.live;
    return utterance?.isOf(text, instead) ? utterance : undefined;
  }

  #refuse(utterance: Utterance, problem: Problem): void {
    utterance.isUnderway = false;
    this.live.set({ problem, failed: "sending", unsent: utterance.unsent, retrying: undefined, isReconnecting: false, nextTryAt: undefined });
  }

  /** Stops a message that may or may not have arrived. */
  async #stopUnsent(utterance: Utterance): Promise<void> {
    const { live } = this;
    utterance.wantsStop = true;
    // Nearly always the run starts in a moment, and then the page cancels it.
    if (!live.now.isReconnecting) return;
    this.#refuse(utterance, new Problem(0, UNREACHABLE, "It was not sent."));
    await live.sdk.stop();
    // If the message has arrived, its run works on the server, and no reader wants it.
    if (await this.#stopping.cancel(live.sdk.id).catch(() => false)) this.#readAll();
  }

  #readAll(): void {
    this.live.tell();
    void this.reading.read();
  }

  /** Whether the chat has sent a message, or may have sent one. */
  get #isBegun(): boolean {
    const { sdk, conversationId, now } = this.live;
    return sdk.messages.length > 0 || conversationId !== undefined || (now.unsent !== undefined && now.problem?.status === 0);
  }
}
