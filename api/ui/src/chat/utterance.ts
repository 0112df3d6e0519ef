// An utterance is a message, an edit of one, or a request for another answer, until the server has it. Until the page
// knows that, it can repeat the utterance without duplicates, and withdraw it without a trace.
import type { Chat as SdkChat } from "@ai-sdk/react";

import { newId } from "../client/id";
import type { ChatMessage } from "./message";

export interface Utterance {
  /** The idempotency key of all tries. */
  key: string;
  /** The message's id, also on the server; a request for another answer has the id of that answer, if any. */
  id?: string;
  /** The reader's text; it is undefined for a request for another answer. */
  text?: string;
  /** The message that the text replaces. */
  instead?: string;
  /** RFC 3339. */
  createdAt: string;
}

const now = () => new Date().toISOString();

export function newMessage(text: string): Utterance & { id: string } {
  return { key: newId(), id: newId(), text, createdAt: now() };
}

export function newEdit(messageId: string, text: string): Utterance {
  return { key: newId(), id: messageId, text, instead: messageId, createdAt: now() };
}

/** Without a message id, the SDK repeats the newest answer. */
export function newAnswer(messageId?: string): Utterance {
  return { key: newId(), id: messageId, createdAt: now() };
}

/** Resolves when the answer has ended, or after a refusal. */
export function say(sdk: SdkChat<ChatMessage>, { key, id, text, instead, createdAt }: Utterance): Promise<void> {
  const options = { headers: { "idempotency-key": key } };
  const metadata = { createdAt };
  if (text === undefined) return sdk.regenerate({ messageId: id, ...options });
  if (instead !== undefined) return sdk.sendMessage({ text, messageId: instead, metadata }, options);
  return sdk.sendMessage({ id, role: "user", parts: [{ type: "text", text }], metadata } as ChatMessage, options);
}

/** Whether the server makes another version of a message from it: of the question, or of the answer. */
export function isVersion({ text, instead }: Utterance): boolean {
  return text === undefined || instead !== undefined;
}

/** Whether it has this text and replaces this message. */
export function isOf(utterance: Utterance | undefined, text: string, instead?: string): utterance is Utterance {
  return utterance !== undefined && utterance.text === text && utterance.instead === instead;
}

/**
 * Returns the utterance that is still unsent, or nothing if the history has it. For a request for another answer, the
 * history shows everything. An edit of a message that is gone becomes a new message.
 */
export function unsentAfter(utterance: Utterance | undefined, history: ChatMessage[]): Utterance | undefined {
  if (utterance?.text === undefined) return undefined;
  const { key, id, text, instead } = utterance;
  const stored = history.find((message) => message.id === id);
  if (stored?.parts.some((part) => part.type === "text" && part.text === text)) return undefined;
  // The server may know the key of the edit, so the new message has another one.
  return instead !== undefined && !stored ? { ...utterance, key: `${key}-new`, id: key, instead: undefined } : utterance;
}
