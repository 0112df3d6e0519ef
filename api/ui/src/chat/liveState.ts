// What the parts of a live chat share: the AI SDK's chat, the state beside it, and which of the things that were begun is the
// newest, because what comes of an older one is of no interest.
import type { Chat as SdkChat } from "@ai-sdk/react";

import type { Progress, Unsent } from "./chat";
import type { ChatMessage } from "./message";
import { withVerdicts } from "./questions";
import { initially, progressOf, type State } from "./state";
import { chatTabs } from "./tabs";
import type { Utterance } from "./utterance";

/** How often a view hears of new text, in ms. */
export const THROTTLE_MS = 50;

/** What is no longer so when something new begins. */
export const QUIET: Partial<State> = {
  isLoading: false,
  doing: undefined,
  retrying: undefined,
  isReconnecting: false,
  nextTryAt: undefined,
  problem: undefined,
  failed: undefined,
};

export class LiveState {
  /** What was said last, as long as nobody knows that the server has it. */
  said: Utterance | undefined;
  /** Whom a new chat is to be with. */
  wantedAgentId: string | undefined;
  /** Whom it is with, from the first message on. */
  agentId: string | undefined;
  #state: State;
  #listeners = new Set<() => void>();
  #newest = 0;

  constructor(
    readonly sdk: SdkChat<ChatMessage>,
    readonly isNew: boolean,
  ) {
    this.#state = initially(isNew);
  }

  get now(): State {
    return this.#state;
  }

  set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
    this.#listeners.forEach((listener) => listener());
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Resolves as soon as nothing is on its way to the server; with what it does not have. */
  settled(): Promise<Unsent | undefined> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.said?.isUnderway) return;
        stop();
        resolve(this.said?.unsent);
      };
      const stop = this.subscribe(check);
      check();
    });
  }

  /** Begins something; gives back how to know whether it is still the newest. */
  begin(): () => boolean {
    const mine = (this.#newest += 1);
    return () => mine === this.#newest;
  }

  /** Whether what is the newest now still is, whenever that is asked. */
  watch(): () => boolean {
    const newest = this.#newest;
    return () => newest === this.#newest;
  }

  /** The messages as they are shown, but for what is known of their approvals. */
  get shown(): ChatMessage[] {
    return this.#state.held ?? this.sdk.messages;
  }

  get progress(): Progress {
    const last = this.shown.at(-1);
    return progressOf(this.#state, this.sdk.status, last ? [withVerdicts(last, this.#state.verdicts)] : []);
  }

  get isAsking(): boolean {
    return this.#state.isResuming || this.sdk.status === "submitted" || this.sdk.status === "streaming";
  }

  get conversationId(): string | undefined {
    const told = this.sdk.messages.findLast(({ metadata }) => metadata?.conversationId);
    return this.#state.conversationId ?? told?.metadata?.conversationId;
  }

  /** Tells the other tabs that something has happened here. */
  tell(): void {
    const { id } = this.sdk;
    chatTabs.tell({ ids: this.conversationId ? [id, this.conversationId] : [id] });
  }
}
