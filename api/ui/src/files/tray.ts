// A tray has the files of a message that its writer has not sent: each is being uploaded, has failed, or is on the
// server. It knows nothing of React; the uploads continue while another conversation is open.
import { newId } from "holdfast-client/id";
import { type Problem, problemFrom } from "holdfast-client/problem";
import type { Begun } from "holdfast-client/upload";
import type { StoredFile } from "holdfast-client/wire";

import { type FileRef, deleteFile } from "../client/files";
import type { Uploading } from "../client/upload";
import { keepPreview } from "./previews";

export interface Item {
  key: string;
  name: string;
  mediaType: string;
  bytes: number;
  state: "uploading" | "failed" | "ready";
  /** Bytes that the server has. */
  received: number;
  /** Says why the upload has failed. */
  problem?: Problem;
  /** The server's file, once ready. */
  id?: string;
  /** The address of the local picture. */
  preview?: string;
}

/** The server takes as many files in a message, unless its operator has chosen another number. */
export const MOST_FILES = 10;

type Upload = (file: Blob, name: string, options: Uploading) => Promise<StoredFile>;

/** The page loads the code of uploads with the first one. */
const uploadLater: Upload = async (file, name, options) => (await import("../client/upload")).uploadFile(file, name, options);

/** The page's own side of an item. */
interface Source {
  file: File;
  begun: Begun;
  abort: AbortController;
}

export class Tray {
  items: readonly Item[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #sources = new Map<string, Source>();

  constructor(
    readonly upload: Upload = uploadLater,
    readonly deleteStored = deleteFile,
  ) {}

  /** Returns a tray with files of a message. */
  static with(files: readonly FileRef[]): Tray {
    const tray = new Tray();
    tray.put(files);
    return tray;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Begins to upload the files, and returns how many of them were too many. */
  add(files: readonly File[]): number {
    const taken = files.slice(0, Math.max(0, MOST_FILES - this.items.length));
    for (const file of taken) {
      const key = newId();
      const preview = /^image\/(png|jpeg|gif|webp)$/.test(file.type) ? URL.createObjectURL(file) : undefined;
      this.#sources.set(key, { file, begun: { key: newId(), received: 0 }, abort: new AbortController() });
      this.#set([...this.items, { key, name: file.name, mediaType: file.type, bytes: file.size, state: "uploading", received: 0, preview }]);
      void this.#run(key);
    }
    return files.length - taken.length;
  }

  /** Tries a failed upload again; it continues where it stopped. */
  retry(key: string): void {
    const source = this.#sources.get(key);
    if (!source || this.#item(key)?.state !== "failed") return;
    source.abort = new AbortController();
    this.#change(key, { state: "uploading", problem: undefined });
    void this.#run(key);
  }

  /** Removes an item; the server keeps no file that only this tray has had. */
  remove(key: string): void {
    const [item, source] = [this.#item(key), this.#sources.get(key)];
    this.#forget(key);
    // The end of a running upload discards what it has begun.
    if (source && item?.state !== "uploading") this.#discard(item?.id ?? source.begun.id);
  }

  /** Puts files on the tray that the server has, and that other messages may have too. */
  put(files: readonly FileRef[]): void {
    const known = new Set(this.items.map(({ id }) => id));
    const added = files.filter(({ id }) => !known.has(id));
    if (added.length > 0) this.#set([...added.map(itemOf), ...this.items]);
  }

  /** Takes files off the tray that now belong to a message. */
  drop(files: readonly FileRef[]): void {
    for (const { id } of files) {
      const item = this.items.find((item) => item.id === id);
      if (!item) continue;
      if (item.preview) keepPreview(id, item.preview);
      this.#change(item.key, { preview: undefined });
      this.#forget(item.key);
    }
  }

  /** Ends all uploads; the server keeps what it has. */
  abandon(): void {
    this.items.forEach(({ key }) => this.#forget(key));
  }

  /** Removes all items. */
  close(): void {
    this.items.forEach(({ key }) => this.remove(key));
  }

  get files(): FileRef[] {
    return readyOf(this.items);
  }

  async #run(key: string): Promise<void> {
    const source = this.#sources.get(key)!;
    const { file, begun, abort } = source;
    try {
      const stored = await this.upload(file, file.name, { signal: abort.signal, begun, onProgress: (received) => this.#change(key, { received }) });
      if (abort.signal.aborted) return this.#discard(stored.id);
      this.#change(key, { state: "ready", id: stored.id, received: stored.bytes, name: stored.name, mediaType: stored.media_type, bytes: stored.bytes });
    } catch (error) {
      if (abort.signal.aborted) this.#discard(begun.id);
      else this.#change(key, { state: "failed", problem: problemFrom(error) });
    }
  }

  /** If the server does not answer, it deletes the unused file later by itself. */
  #discard(id: string | undefined): void {
    if (id !== undefined) this.deleteStored(id).catch(() => {});
  }

  #item(key: string): Item | undefined {
    return this.items.find((item) => item.key === key);
  }

  #change(key: string, changes: Partial<Item>): void {
    this.#set(this.items.map((item) => (item.key === key ? { ...item, ...changes } : item)));
  }

  #forget(key: string): void {
    const item = this.#item(key);
    if (item?.preview) URL.revokeObjectURL(item.preview);
    this.#sources.get(key)?.abort.abort(new DOMException("the file was removed", "AbortError"));
    this.#sources.delete(key);
    this.#set(this.items.filter((item) => item.key !== key));
  }

  #set(items: readonly Item[]): void {
    this.items = items;
    this.#listeners.forEach((listener) => listener());
  }
}

const itemOf = ({ id, name, mediaType, bytes }: FileRef): Item => ({ key: id, name, mediaType, bytes, state: "ready", received: bytes, id });

export function readyOf(items: readonly Item[]): FileRef[] {
  return items.flatMap(({ id, name, mediaType, bytes, state }) => (state === "ready" && id !== undefined ? [{ id, name, mediaType, bytes }] : []));
}

/** Returns why a message with these files cannot be sent yet. */
export function obstacleOf(items: readonly Item[]): "uploading" | "failed" | undefined {
  if (items.some(({ state }) => state === "uploading")) return "uploading";
  return items.some(({ state }) => state === "failed") ? "failed" : undefined;
}
