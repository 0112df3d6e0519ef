// An utterance is a message, an edit of one, or a request for another answer, until the server has it. Until the page
// knows that, it can repeat the utterance without duplicates, and withdraw it without a trace.
import type { Chat as SdkChat } from "@ai-sdk/react";
import { newId } from "holdfast-client/id";

import type { FileRef } from "../client/files";
import type { Posting, WaitingMode } from "./chat";
import { areSame, filesOf, partsOf } from "./files";
import type { ChatMessage } from "./message";

export interface Utterance {
  /** The idempotency key of all tries. */
  key: string;
  /** The message's id, also on the server; a request for another answer has the id of that answer, if any. */
  id?: string;
  /** The reader's text; it is undefined for a request for another answer. */
  text?: string;
  files?: FileRef[];
  /** The message that the text replaces. */
  instead?: string;
  /** RFC 3339. */
  createdAt: string;
}

const now = () => new Date().toISOString();

export function newMessage(text: string, files?: FileRef[]): Utterance & { id: string } {
  return { key: newId(), id: newId(), text, ...some(files), createdAt: now() };
}

export function newEdit(messageId: string, text: string, files?: FileRef[]): Utterance {
  return { key: newId(), id: messageId, text, ...some(files), instead: messageId, createdAt: now() };
}

const some = (files: FileRef[] = []) => (files.length > 0 ? { files } : {});

/** Without a message id, the SDK repeats the newest answer. */
export function newAnswer(messageId?: string): Utterance {
  return { key: newId(), id: messageId, createdAt: now() };
}

/** Resolves when the answer has ended, or after a refusal. */
export function say(sdk: SdkChat<ChatMessage>, { key, id, text, files, instead, createdAt }: Utterance): Promise<void> {
  const options = { headers: { "idempotency-key": key } };
  const metadata = { createdAt };
  if (text === undefined) return sdk.regenerate({ messageId: id, ...options });
  const parts = partsOf(text, files);
  if (instead !== undefined) return sdk.sendMessage({ role: "user", parts, messageId: instead, metadata }, options);
  return sdk.sendMessage({ id, role: "user", parts, metadata } as ChatMessage, options);
}

/** Whether the server makes another version of a message from it: of the question, or of the answer. */
export function isVersion({ text, instead }: Utterance): boolean {
  return text === undefined || instead !== undefined;
}

/** Whether it has this text and these files and replaces this message. */
export function isOf(utterance: Utterance | undefined, text: string, files?: FileRef[], instead?: string): utterance is Utterance {
  return utterance !== undefined && utterance.text === text && areSame(utterance.files, files) && utterance.instead === instead;
}

/** Returns the posting of a message: the withdrawn one of the same message, which may have arrived, or a new one. */
export function postingOf(withdrawn: Posting | undefined, text: string, mode: WaitingMode, files: FileRef[]): Posting {
  const isSame = withdrawn && withdrawn.text === text && withdrawn.mode === mode && areSame(withdrawn.files, files);
  return isSame ? { ...withdrawn, state: undefined } : { id: newId(), text, ...some(files), mode };
}

/**
 * Returns the utterance that is still unsent, or nothing if the history has it. For a request for another answer, the
 * history shows everything. An edit of a message that is gone becomes a new message.
 */
export function unsentAfter(utterance: Utterance | undefined, history: ChatMessage[]): Utterance | undefined {
  if (utterance?.text === undefined) return undefined;
  const { key, id, text, files = [], instead } = utterance;
  const stored = history.find((message) => message.id === id);
  // The server gives a message with files another id than the page.
  if ((files.length > 0 ? history : [stored]).some((message) => message && isSaidBy(message, text, files))) return undefined;
  // The server may know the key of the edit, so the new message has another one.
  return instead !== undefined && !stored ? { ...utterance, key: `${key}-new`, id: key, instead: undefined } : utterance;
}

function isSaidBy(message: ChatMessage, text: string, files: FileRef[]): boolean {
  const said = message.parts.find((part) => part.type === "text")?.text ?? "";
  return message.role === "user" && said === text && areSame(filesOf(message), files);
}
