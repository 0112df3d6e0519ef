// These are the typed calls of collections, their documents and their passages. All of them reject with a `Problem`.
import { path } from "holdfast-client/address";
import { follow } from "holdfast-client/processor";

import { call, query } from "./call";
import type { Conversation, Page, Run } from "./server";
import { authorization } from "./token";

export interface Collection {
  id: string;
  name: string;
  description: string | null;
  created_at: string;
}

export interface KnowledgeDocument {
  id: string;
  collection_id: string;
  title: string;
  media_type: string;
  bytes: number;
  status: "queued" | "processing" | "ready" | "failed" | "cancelled";
  error: { code: string; message: string } | null;
  /** The newest run of its ingestion; null for a reader who is not the owner. */
  run_id: string | null;
  /** Unicode scalar values of its text, once it is extracted. */
  chars: number | null;
  passages: number;
  /** Which passages have a vector. */
  vectors: "complete" | "partial" | "none";
  /** Why passages lack vectors; null if none does, without a provider of vectors, and for a reader who is not the owner. */
  vectors_error: { code: string; message: string } | null;
  created_at: string;
}

export interface FoundPassage {
  /** The document. */
  id: string;
  /** The number of the passage in it. */
  chunk: number;
  title: string;
  page?: number;
  start: number;
  end: number;
  text: string;
}

type Listing = { cursor?: string; limit?: number; signal?: AbortSignal };
type Accepted = { document: KnowledgeDocument; run: Run };

/** The newest collection comes first. */
export const readCollections = ({ cursor, limit, signal }: Listing = {}) => call<Page<Collection>>(`/v1/collections${query({ cursor, limit })}`, { signal });

export const readCollection = (id: string) => call<Collection>(path`/v1/collections/${id}`);

export const createCollection = (body: { name: string; description?: string }) => call<Collection>("/v1/collections", { method: "POST", body });

export const deleteCollection = (id: string) => call<void>(path`/v1/collections/${id}`, { method: "DELETE" });

/** The newest document comes first. */
export const readDocuments = (collectionId: string, { cursor, limit, signal }: Listing = {}) =>
  call<Page<KnowledgeDocument>>(`${path`/v1/collections/${collectionId}/documents`}${query({ cursor, limit })}`, { signal });

export const readDocument = (id: string) => call<KnowledgeDocument>(path`/v1/documents/${id}`);

/** A repeated call with the same key gives the same document. */
export const addDocument = (collectionId: string, body: { file_id: string; title?: string }, { key, signal }: { key?: string; signal?: AbortSignal } = {}) =>
  call<Accepted>(path`/v1/collections/${collectionId}/documents`, { method: "POST", body, key, signal });

/** Tries the ingestion again; rejects with `nothing_to_retry` unless it has failed or was cancelled. */
export const retryDocument = (id: string) => call<Accepted>(path`/v1/documents/${id}/retry`, { method: "POST" });

export const deleteDocument = (id: string) => call<void>(path`/v1/documents/${id}`, { method: "DELETE" });

export const cancelRun = (id: string) => call<Run>(path`/v1/runs/${id}/cancel`, { method: "POST" });

/** The best passage comes first. */
export const searchCollection = (id: string, text: string, { limit, signal }: Listing = {}) =>
  call<{ items: FoundPassage[] }>(`${path`/v1/collections/${id}/search`}${query({ query: text, limit })}`, { signal });

/** The later runs of the conversation answer from these collections. */
export const setKnowledge = (id: string, knowledge: readonly string[]) => call<Conversation>(path`/v1/conversations/${id}`, { method: "PATCH", body: { knowledge } });

/** Creates a conversation without messages. */
export const createConversation = (body: { agent_id?: string; knowledge: readonly string[] }) => call<Conversation>("/v1/conversations", { method: "POST", body });

const TEXT_TIMEOUT_MS = 30_000;

/** Returns a part of a document's text; the places count Unicode scalar values. */
export async function readText(id: string, from: number, to: number, { signal }: { signal?: AbortSignal } = {}): Promise<string> {
  const answer = await follow(`${path`/v1/documents/${id}/text`}${query({ from, to })}`, { headers: authorization() }, { timeout: TEXT_TIMEOUT_MS, signal });
  return answer.kind === "text" ? answer.text : "";
}
