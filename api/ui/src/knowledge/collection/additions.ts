// Files on their way into a collection: each is uploaded, and then handed over as a document. They go one after another,
// and wait where the server has enough to do. This file knows nothing of React; the work continues while the reader
// is elsewhere on the page.
import { newId } from "holdfast-client/id";
import { patiently } from "holdfast-client/patience";
import { type Problem, problemFrom } from "holdfast-client/problem";
import { type Begun, notBegun } from "holdfast-client/upload";
import type { StoredFile } from "holdfast-client/wire";

import { deleteFile } from "../../client/files";
import { addDocument, type KnowledgeDocument } from "../../client/knowledge";
import { type Uploading, uploadFile } from "../../client/upload";

export interface Addition {
  key: string;
  name: string;
  bytes: number;
  /** `held` means that the server takes no more for now. */
  state: "waiting" | "uploading" | "submitting" | "held" | "failed";
  /** Bytes that the server has. */
  received: number;
  /** Says why it has failed. */
  problem?: Problem;
}

interface Source {
  file: File;
  begun: Begun;
  abort: AbortController;
}

/** The calls to the server. */
export interface Calls {
  upload(file: Blob, name: string, options: Uploading): Promise<StoredFile>;
  add(collectionId: string, fileId: string, key: string, signal: AbortSignal): Promise<KnowledgeDocument>;
  deleteStored(fileId: string): Promise<unknown>;
}

const calls: Calls = {
  upload: uploadFile,
  add: async (collectionId, file_id, key, signal) => (await addDocument(collectionId, { file_id }, { key, signal })).document,
  deleteStored: deleteFile,
};

export class Additions {
  items: readonly Addition[] = [];
  /** The documents that the server has taken, newest last. */
  taken: readonly KnowledgeDocument[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #sources = new Map<string, Source>();
  #isWorking = false;

  constructor(
    readonly collectionId: string,
    readonly does: Calls = calls,
  ) {}

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  add(files: readonly File[]): void {
    const added = files.map((file): Addition => {
      const key = newId();
      this.#sources.set(key, { file, begun: notBegun(), abort: new AbortController() });
      return { key, name: file.name, bytes: file.size, state: "waiting", received: 0 };
    });
    this.#set([...this.items, ...added]);
    void this.#work();
  }

  /** Tries a failed file again. */
  retry(key: string): void {
    const source = this.#sources.get(key);
    if (!source) return;
    source.abort = new AbortController();
    this.#change(key, { state: "waiting", problem: undefined });
    void this.#work();
  }

  /** Removes a file that is not a document yet. */
  remove(key: string): void {
    this.#sources.get(key)?.abort.abort(new DOMException("the file was removed", "AbortError"));
    this.#forget(key);
  }

  /** Takes one waiting file after another. */
  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    for (let next = this.#next(); next; next = this.#next()) await this.#take(next.key);
    this.#isWorking = false;
  }

  #next(): Addition | undefined {
    return this.items.find(({ state }) => state === "waiting");
  }

  async #take(key: string): Promise<void> {
    const source = this.#sources.get(key)!;
    const fileId = await this.#upload(key, source);
    if (fileId !== undefined) await this.#handOver(key, source, fileId);
  }

  /** Returns the id of the file that the server has now, if any. */
  async #upload(key: string, { file, begun, abort: { signal } }: Source): Promise<string | undefined> {
    this.#change(key, { state: "uploading" });
    try {
      const { id } = await this.does.upload(file, file.name, { signal, begun, onProgress: (received) => this.#change(key, { received }) });
      if (!signal.aborted) return id;
      this.#discard(id);
    } catch (error) {
      if (signal.aborted) this.#discard(begun.id);
      else this.#fail(key, problemFrom(error));
    }
    return undefined;
  }

  /** Makes a document of the file. The server names the time of the next try while it has enough to do. */
  async #handOver(key: string, source: Source, fileId: string): Promise<void> {
    const { signal } = source.abort;
    const submit = () => {
      this.#change(key, { state: "submitting" });
      return this.does.add(this.collectionId, fileId, key, signal);
    };
    const onTrouble = () => this.#change(key, { state: "held" });
    try {
      const document = await patiently(submit, { signal, patience: Number.POSITIVE_INFINITY, onTrouble, isFinal: ({ status }) => status === 500 });
      this.taken = [...this.taken, document];
      this.#forget(key);
    } catch (error) {
      // The server may have the document, so its file stays.
      if (signal.aborted) return;
      const problem = problemFrom(error);
      if (!problem.mayPass) this.#discard(fileId);
      source.begun = notBegun();
      this.#fail(key, problem);
    }
  }

  #fail(key: string, problem: Problem): void {
    this.#change(key, { state: "failed", received: 0, problem });
  }

  /** Without an answer, the server deletes the unused file later by itself. */
  #discard(fileId: string | undefined): void {
    if (fileId !== undefined) this.does.deleteStored(fileId).catch(() => {});
  }

  #change(key: string, changes: Partial<Addition>): void {
    this.#set(this.items.map((item) => (item.key === key ? { ...item, ...changes } : item)));
  }

  #forget(key: string): void {
    this.#sources.delete(key);
    this.#set(this.items.filter((item) => item.key !== key));
  }

  #set(items: readonly Addition[]): void {
    this.items = items;
    this.#listeners.forEach((listener) => listener());
  }
}

const known = new Map<string, Additions>();

/** Returns the files on their way into this collection. */
export function additionsOf(collectionId: string): Additions {
  const additions = known.get(collectionId) ?? new Additions(collectionId);
  known.set(collectionId, additions);
  return additions;
}
