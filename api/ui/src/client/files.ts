// This file has the calls for files that the server has, and for messages with files.
import { path } from "holdfast-client/address";

import { call, query } from "./call";
import type { AgentContext } from "./context";
import type { Page, Run } from "./server";
import { authorization } from "./token";

/** A file of a message. */
export interface FileRef {
  id: string;
  name: string;
  mediaType: string;
  bytes: number;
}

/** The page shows these media types as pictures. */
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export const isPicture = ({ mediaType }: { mediaType: string }) => PICTURES.includes(mediaType);

export const addressOf = ({ id }: { id: string }) => path`/v1/files/${id}`;

export const deleteFile = (id: string) => call<void>(path`/v1/files/${id}`, { method: "DELETE" });

/** Whether the server has the file; a server that does not answer may have it. */
export async function isThere(file: FileRef): Promise<boolean> {
  const response = await fetch(addressOf(file), { method: "HEAD", headers: authorization() }).catch(() => undefined);
  return response?.status !== 404;
}

/** Returns the file's bytes, with the reader's token. */
export async function readFile(file: FileRef): Promise<Blob> {
  const response = await fetch(addressOf(file), { headers: authorization() });
  if (!response.ok) throw new Error(`The server answers ${response.status}.`);
  return response.blob();
}

export type Content = string | ({ type: "text"; text: string } | { type: "image" | "file"; file_id: string })[];

/** Returns the content of a message; its files come before its text, as models read them best. */
export function contentOf(text: string, files: readonly FileRef[]): Content {
  if (files.length === 0) return text;
  const parts = files.map((file) => ({ type: isPicture(file) ? ("image" as const) : ("file" as const), file_id: file.id }));
  return text === "" ? parts : [...parts, { type: "text", text }];
}

/** A message as the API has it. */
export interface StoredMessage {
  id: string;
  client_id?: string;
  attachments?: { file_id: string; name: string; media_type: string; bytes: number }[];
}

type Named = { context?: AgentContext; agent_id?: string; client_tools?: unknown[] };
type Posted = { message: StoredMessage; run: Run };

/** Posts the first message of a new conversation. */
export const postFirst = (key: string, body: Named & { input: Content }) => call<Posted>("/v1/runs", { method: "POST", body, key });

/** Posts a message; with `replace_from`, it replaces that message and supersedes the later ones. */
export const postNext = (key: string, conversationId: string, body: Omit<Named, "agent_id"> & { content: Content; replace_from?: string; mode?: "steer" | "enqueue" }) =>
  call<Posted>(path`/v1/conversations/${conversationId}/messages`, { method: "POST", body, key });

/** Returns the messages of a conversation, page by page, oldest first. */
export async function* storedMessages(conversationId: string): AsyncGenerator<StoredMessage> {
  for (let cursor: string | undefined; ; ) {
    const page = await call<Page<StoredMessage>>(`${path`/v1/conversations/${conversationId}/messages`}${query({ cursor, limit: 200 })}`);
    yield* page.items ?? [];
    if (!page.next) return;
    cursor = page.next;
  }
}
