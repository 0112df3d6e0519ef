// The files of a message are parts of it, in the AI SDK's form, as the chat's history has them. A file that a tool has returned has
// its name among the metadata, because the SDK's chunk has no field for it.
import { type FileRef, addressOf, storedMessages } from "../client/files";
import type { ChatMessage, Part } from "./message";

type FilePart = Extract<Part, { type: "file" }>;

export function partOf(file: FileRef): FilePart {
  const { id, name, mediaType, bytes } = file;
  return { type: "file", mediaType, filename: name, url: addressOf(file), providerMetadata: { holdfast: { id, bytes } } };
}

export function filesOf({ parts }: Pick<ChatMessage, "parts">): FileRef[] {
  return parts.flatMap((part) => fileOf(part) ?? []);
}

/** Returns the file of a part, if it is one of this server. */
export function fileOf(part: Part): FileRef | undefined {
  if (part.type !== "file") return undefined;
  const { id, name, bytes } = part.providerMetadata?.holdfast ?? {};
  if (typeof id !== "string") return undefined;
  return { id, name: part.filename ?? (typeof name === "string" ? name : ""), mediaType: part.mediaType, bytes: Number(bytes ?? 0) };
}

/** Returns the parts of a message with this text and these files. */
export function partsOf(text: string, files: readonly FileRef[] = []): Part[] {
  const parts: Part[] = files.map(partOf);
  return text === "" && parts.length > 0 ? parts : [...parts, { type: "text", text }];
}

export function areSame(one: readonly FileRef[] = [], other: readonly FileRef[] = []): boolean {
  return one.length === other.length && one.every(({ id }, index) => id === other[index]!.id);
}

/** Returns the server's id of a message of the chat. */
export async function serverIdOf(conversationId: string, messageId: string): Promise<string> {
  for await (const { id, client_id } of storedMessages(conversationId)) {
    if (id === messageId || client_id === messageId) return id;
  }
  return messageId;
}
