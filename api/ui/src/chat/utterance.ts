// An utterance is a message, an edit of one, or a request for another answer, until the server has it. Until the page
// knows that, it can repeat the utterance without duplicates, and withdraw it without a trace.
import type { Chat as SdkChat } from "@ai-sdk/react";

import { newId } from "../client/id";
import type { Unsent } from "./chat";
import type { ChatMessage } from "./message";
import { withoutQuestions } from "./questions";

type Sdk = SdkChat<ChatMessage>;

/** The reader's text; it is undefined for a request for another answer. `id` is the message's, also on the server. */
type Written = { id: string; text: string; instead?: string };

export class Utterance {
  /** Whether the utterance is in flight. Otherwise the server refused it, or the page dropped it. */
  isUnderway = false;
  /** The reader has stopped the answer before it existed. */
  wantsStop = false;
  /** The earlier messages, which a refusal brings back. */
  #before: ChatMessage[] = [];

  private constructor(
    readonly sdk: Sdk,
    readonly ask: () => Promise<void>,
    readonly written?: Written,
  ) {}

  static message(sdk: Sdk, text: string): Utterance {
    const written = { id: newId(), text };
    const [headers, metadata] = [once(), { createdAt: new Date().toISOString() }];
    const message = { id: written.id, role: "user" as const, parts: [{ type: "text" as const, text }], metadata };
    return new Utterance(sdk, () => sdk.sendMessage(message, { headers }), written);
  }

  static edit(sdk: Sdk, messageId: string, text: string): Utterance {
    const [headers, metadata] = [once(), { createdAt: new Date().toISOString() }];
    const ask = () => sdk.sendMessage({ text, messageId, metadata }, { headers });
    return new Utterance(sdk, ask, { id: messageId, text, instead: messageId });
  }

  /** Without a message id, the SDK repeats the newest answer. */
  static regenerate(sdk: Sdk, messageId?: string): Utterance {
    const headers = once();
    return new Utterance(sdk, () => sdk.regenerate({ messageId, headers }));
  }

  /**
   * Sends the utterance after these messages. Resolves when its answer has ended, or after a refusal: then the page
   * shows these messages again.
   */
  async say(before: ChatMessage[]): Promise<void> {
    this.#before = before;
    this.sdk.messages = withoutQuestions(before);
    await this.ask();
  }

  /** Whether the server makes another version of a message from it: of the question, or of the answer. */
  get isVersion(): boolean {
    return !this.written || this.written.instead !== undefined;
  }

  takeBack(): void {
    this.isUnderway = false;
    this.sdk.messages = this.#before;
  }

  get unsent(): Unsent {
    return { text: this.written?.text, instead: this.written?.instead, isUnderway: this.isUnderway };
  }

  /** Whether it has this text and replaces this message. */
  isOf(text: string, instead?: string): boolean {
    return this.written !== undefined && this.written.text === text && this.written.instead === instead;
  }

  /**
   * Returns the utterance that is still unsent, or nothing if the history has it. For a request for another answer, the
   * history shows everything. An edit of a message that is gone becomes a new message.
   */
  after(history: ChatMessage[]): Utterance | undefined {
    const { written } = this;
    const stored = history.find(({ id }) => id === written?.id);
    if (!written || stored?.parts.some((part) => part.type === "text" && part.text === written.text)) return undefined;
    return written.instead !== undefined && !stored ? Utterance.message(this.sdk, written.text) : this;
  }
}

/** All tries share one key. */
function once(): Record<string, string> {
  return { "idempotency-key": newId() };
}
