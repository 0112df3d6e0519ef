// An utterance: a message, another wording of one, or the wish for another answer, from when it is said until the server has
// it. As long as nobody knows that, it can be said again without being said twice, and taken back without a trace.
import type { Chat as SdkChat } from "@ai-sdk/react";

import { newId } from "../client/id";
import type { Unsent } from "./chat";
import type { ChatMessage } from "./message";
import { withoutQuestions } from "./questions";

type Sdk = SdkChat<ChatMessage>;

/** What was written; nothing where only another answer is wanted. `id` is the message's, also on the server. */
type Written = { id: string; text: string; instead?: string };

export class Utterance {
  /** Whether it is on its way. Else it was refused, or given up. */
  isUnderway = false;
  /** Somebody has stopped the answer before there was one. */
  wantsStop = false;
  /** The messages as they were, for when it is refused. */
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

  /** Without a message, the newest is answered anew. */
  static regenerate(sdk: Sdk, messageId?: string): Utterance {
    const headers = once();
    return new Utterance(sdk, () => sdk.regenerate({ messageId, headers }));
  }

  /** Says it, after these messages. Resolves when its answer has ended, or it was refused: then they are there again. */
  async say(before: ChatMessage[]): Promise<void> {
    this.#before = before;
    this.sdk.messages = withoutQuestions(before);
    await this.ask();
  }

  /** Whether the server makes another version of a message of it: of the question, or of the answer. */
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

  /** Whether it is these words, said instead of the same message. */
  isOf(text: string, instead?: string): boolean {
    return this.written !== undefined && this.written.text === text && this.written.instead === instead;
  }

  /** What is still to be said: nothing, if the server has it after all. Of another answer its history shows all that there is
   * to know. What was to be said instead of a message that is gone is a message of its own. */
  after(history: ChatMessage[]): Utterance | undefined {
    const { written } = this;
    const said = history.find(({ id }) => id === written?.id);
    if (!written || said?.parts.some((part) => part.type === "text" && part.text === written.text)) return undefined;
    return written.instead !== undefined && !said ? Utterance.message(this.sdk, written.text) : this;
  }
}

/** One key for all tries. */
function once(): Record<string, string> {
  return { "idempotency-key": newId() };
}
