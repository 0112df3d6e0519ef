// This file carries out the effects of the reducer: requests to the server, calls of the AI SDK, and notices to other
// tabs. Each result is an event again.
import type { Chat as SdkChat } from "@ai-sdk/react";
import { patiently } from "holdfast-client/patience";

import { readConversation, readMessages, stopAnswer } from "../client/server";
import { NEWEST } from "./earlier";
import type { ChatMessage } from "./message";
import { verdictsWith } from "./outcome";
import { withoutQuestions } from "./questions";
import type { Effect, Event } from "./reducer";
import { shownOf, type State } from "./state";
import { chatTabs } from "./tabs";
import { say } from "./utterance";
import { queuedIn } from "./waiting";

/** The interval in ms at which a view receives new text. */
export const THROTTLE_MS = 50;

/** The chat as its effects see it. */
export interface Stage {
  readonly sdk: SdkChat<ChatMessage>;
  readonly isNew: boolean;
  /** The chat's name for the server. */
  readonly name: string;
  readonly now: State;
  readonly conversationId: string | undefined;
  dispatch(event: Event): Promise<void>;
}

type Of<Kind extends Effect["do"]> = Extract<Effect, { do: Kind }>;

export class Effects {
  /** The reader has not left the chat. */
  #open = new AbortController();
  /** The page repeats a cancellation until the server has received it, or until a caller drops it. */
  #wish = new AbortController();
  /** Whether the newest resumed stream exists. */
  #hasStream = false;

  constructor(readonly stage: Stage) {}

  open(): void {
    this.#open = new AbortController();
  }

  close(): void {
    this.#open.abort(new DOMException("the chat was left", "AbortError"));
  }

  connected(): void {
    this.#hasStream = true;
  }

  /** Resolves when the effect has ended. Its own effects may still be under way. */
  async do(effect: Effect): Promise<void> {
    const { sdk } = this.stage;
    switch (effect.do) {
      case "read":
        return this.#read(effect);
      case "look":
        return this.#look(effect);
      case "read-earlier":
        return this.#readEarlier(effect);
      case "resume":
        return this.#resume(effect);
      case "say":
        return this.#say(effect);
      case "set-messages":
        sdk.messages = effect.messages;
        return;
      case "await-paint":
        setTimeout(() => void this.stage.dispatch({ type: "painted", operation: effect.operation }), THROTTLE_MS + 10);
        return;
      case "learn-verdicts":
        return this.#learnVerdicts();
      case "hang-up":
        return sdk.stop();
      case "cancel":
        return this.#cancel(effect);
      case "drop-cancel":
        return this.#wish.abort();
      case "tell": {
        const { conversationId } = this.stage;
        return chatTabs.tell({ ids: conversationId ? [sdk.id, conversationId] : [sdk.id] });
      }
    }
  }

  async #read({ operation, conversationId }: Of<"read">): Promise<void> {
    const { sdk, isNew } = this.stage;
    // A chat that has only the name that this page has given it has no conversation to read.
    const id = conversationId ?? (isNew ? undefined : sdk.id);
    try {
      // Order matters: the history then includes a run that ends between the two requests.
      const conversation = id === undefined ? undefined : await this.#patiently(() => readConversation(id), operation);
      const read = await this.#patiently(() => readMessages<ChatMessage>(conversation?.id ?? this.stage.name, { limit: NEWEST }), operation);
      const queued = conversation && (await queuedIn(conversation, read.messages));
      if (!this.#isNewest(operation)) return;
      await sdk.stop();
      void this.stage.dispatch({ type: "history", operation, conversation, ...read, queued });
    } catch (error) {
      void this.stage.dispatch({ type: "read-failed", operation, error });
    }
  }

  async #look({ operation, conversationId }: Of<"look">): Promise<void> {
    const conversation = await readConversation(conversationId).catch(() => undefined);
    if (conversation) await this.stage.dispatch({ type: "looked", operation, conversation });
  }

  async #readEarlier({ before, limit }: Of<"read-earlier">): Promise<void> {
    const { stage } = this;
    try {
      await stage.dispatch({ type: "earlier", before, ...(await readMessages<ChatMessage>(stage.conversationId ?? stage.name, { limit, before })) });
    } catch {
      await stage.dispatch({ type: "earlier-failed" });
    }
  }

  async #resume({ operation, runId }: Of<"resume">): Promise<void> {
    const { sdk } = this.stage;
    await sdk.stop();
    if (!this.#isNewest(operation)) return;
    this.#hasStream = false;
    await sdk.resumeStream();
    void this.stage.dispatch({ type: "resumed", operation, runId, hasStream: this.#hasStream });
  }

  async #say({ operation, utterance }: Of<"say">): Promise<void> {
    const { sdk } = this.stage;
    // An open stream would continue to write into the new messages.
    await sdk.stop();
    if (!this.#isNewest(operation)) return;
    const before = shownOf(this.stage.now, sdk);
    if (this.stage.now.held) void this.do({ do: "await-paint", operation });
    sdk.messages = withoutQuestions(before);
    await say(sdk, utterance).catch((error: unknown) => this.stage.dispatch({ type: "failed", error }));
    void this.stage.dispatch({ type: "replied", operation, utterance, before });
  }

  /** It means one answer: a new message drops the cancellation. */
  async #cancel({ isQuiet, runId, messageId }: Of<"cancel">): Promise<void> {
    const { stage } = this;
    this.#wish.abort();
    const { signal } = (this.#wish = new AbortController());
    const onTrouble = (wait: number) => void (isQuiet || stage.dispatch({ type: "disconnected", wait }));
    try {
      await patiently(() => stopAnswer(stage.name, { runId, messageId }), { signal, onTrouble });
      if (!signal.aborted) await stage.dispatch({ type: "cancelled" });
    } catch (error) {
      if (!signal.aborted && !isQuiet) await stage.dispatch({ type: "cancel-failed", error });
    }
  }

  async #learnVerdicts(): Promise<void> {
    const known = this.stage.now.verdicts;
    const verdicts = await verdictsWith(this.stage.sdk.lastMessage, known).catch(() => known);
    if (verdicts !== known) await this.stage.dispatch({ type: "verdicts", verdicts });
  }

  #isNewest(operation: number): boolean {
    return operation === this.stage.now.operation;
  }

  #patiently<T>(ask: () => Promise<T>, operation: number): Promise<T> {
    const onTrouble = (wait: number) => void (this.#isNewest(operation) && this.stage.dispatch({ type: "disconnected", wait }));
    return patiently(ask, { signal: this.#open.signal, onTrouble, isEndless: true });
  }
}
