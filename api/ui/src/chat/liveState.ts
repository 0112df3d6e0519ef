// The parts of a live chat share this state: the AI SDK's chat, the state beside it, and a count of operations. The
// count shows which operation is the newest, because the page ignores the result of an older one.
import type { Chat as SdkChat } from "@ai-sdk/react";

import type { Progress, Unsent } from "./chat";
import type { ChatMessage } from "./message";
import { withVerdicts } from "./questions";
import { initially, progressOf, type State } from "./state";
import { chatTabs } from "./tabs";
import type { Utterance } from "./utterance";

/** The interval in ms at which a view receives new text. */
export const THROTTLE_MS = 50;

/** These fields lose their values when a new operation begins. */
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
  /** The newest utterance, as long as the page does not know that the server has it. */
  utterance: Utterance | undefined;
  /** The agent that the reader has chosen for a new chat. */
  wantedAgentId: string | undefined;
  /** The chat's agent, from the first message on. */
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

  /** Resolves as soon as no message is in flight to the server, with the message that the server does not have. */
  settled(): Promise<Unsent | undefined> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.utterance?.isUnderway) return;
        stop();
        resolve(this.utterance?.unsent);
      };
      const stop = this.subscribe(check);
      check();
    });
  }

  /** Begins an operation; returns a function that says whether it is still the newest. */
  begin(): () => boolean {
    const mine = (this.#newest += 1);
    return () => mine === this.#newest;
  }

  /** Returns a function that says whether the operation that is the newest now still is. */
  watch(): () => boolean {
    const newest = this.#newest;
    return () => newest === this.#newest;
  }

  /** The shown messages, without the known verdicts of their approvals. */
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
    const message = this.sdk.messages.findLast(({ metadata }) => metadata?.conversationId);
    return this.#state.conversationId ?? message?.metadata?.conversationId;
  }

  /** Notifies the other tabs of a change in this chat. */
  tell(): void {
    const { id } = this.sdk;
    chatTabs.tell({ ids: this.conversationId ? [id, this.conversationId] : [id] });
  }
}
