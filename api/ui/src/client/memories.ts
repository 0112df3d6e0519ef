// This file has the calls for what agents remember of the reader.
import { path } from "holdfast-client/address";

import { call, query } from "./call";
import type { Page } from "./server";
import { authorization } from "./token";

export interface Memory {
  id: string;
  /** The name of the agent that wrote it. */
  agent: string;
  /** `user` for a memory that all agents of the reader recall. */
  scope: "agent" | "user";
  text: string;
  version: number;
  /** The last writer. */
  writer: "agent" | "user";
  created_at: string;
  updated_at: string;
  expires_at: string | null;
  source: { run_id: string; message_id: string; conversation_id: string | null };
}

export interface MemoryVersion {
  version: number;
  text: string;
  writer: "agent" | "user";
  written_at: string;
}

/** Returns all memories, newest first. */
export async function readMemories(): Promise<Memory[]> {
  const memories: Memory[] = [];
  for (let cursor: string | undefined; ; ) {
    const page: Page<Memory> = await call<Page<Memory>>(`/v1/users/me/memories${query({ cursor })}`);
    memories.push(...page.items);
    if (!page.next) return memories;
    cursor = page.next;
  }
}

/** Returns the kept versions, oldest first. */
export const readMemoryVersions = async (id: string) => (await call<{ versions: MemoryVersion[] }>(path`/v1/users/me/memories/${id}`)).versions;

/** Rejects with `version_conflict` if the memory has another version. A day expires with its end; `null` is never. */
export const changeMemory = (id: string, body: { version: number; text?: string; expires_at?: string | null }) =>
  call<Memory>(path`/v1/users/me/memories/${id}`, { method: "PATCH", body });

export const deleteMemory = (id: string) => call<void>(path`/v1/users/me/memories/${id}`, { method: "DELETE" });

export const deleteAllMemories = () => call<void>("/v1/users/me/memories", { method: "DELETE" });

/** Returns all memories with their versions, a JSON object in each line. */
export async function exportMemories(): Promise<Blob> {
  const response = await fetch("/v1/users/me/memories/export", { headers: authorization() });
  if (!response.ok) throw new Error(`The server answers ${response.status}.`);
  return response.blob();
}
