// This file uploads a file. A large one goes in pieces, so that an upload continues where its connection was lost.
import { type Server, path, urlOf } from "./address.js";
import { delayAfter, pause } from "./backoff.js";
import { newId } from "./id.js";
import { Waiting } from "./patience.js";
import { Problem, reached } from "./problem.js";
import { follow, jsonOf } from "./processor.js";
import { Watchdog } from "./watchdog.js";
import type { StoredFile } from "./wire.js";

/** A larger file goes in pieces of this many bytes, the server's own parts. */
export const PIECE_BYTES = 1_048_576;

/** The client makes at least this many tries without a new byte. */
const FEWEST_TRIES = 5;

/** The time-out also suits a slow phone. */
const PIECE_TIMEOUT_MS = 120_000;

const OFFSET_TIMEOUT_MS = 30_000;

/** An upload that has begun; another try continues it. */
export interface Begun {
  /** The idempotency key of the file's first request. */
  key: string;
  id?: string;
  received: number;
}

export const notBegun = (): Begun => ({ key: newId(), received: 0 });

export interface Uploading {
  signal?: AbortSignal;
  /** The upload notes its progress here. */
  begun?: Begun;
  /** The server has this many bytes. */
  onProgress?(received: number): void;
  /** The upload fails after five tries, and this many ms, without a new byte; by default 120,000. */
  patience?: number;
  /** Returns the ms before the next try. */
  delay?(failures: number): number;
  /** Makes the first request of the file; by default at once. */
  inTurn?<T>(request: () => Promise<T>): Promise<T>;
}

/** Resolves with the stored file. Rejects with a `Problem`, or with the signal's reason. */
export async function uploadFile(server: Server, file: Blob, name: string, uploading: Uploading = {}): Promise<StoredFile> {
  const { signal, begun = notBegun(), onProgress, delay = delayAfter, patience = 120_000, inTurn = (request) => request() } = uploading;
  const begin = () => inTurn(() => send(server, file, begun, { "content-disposition": dispositionOf(name), "idempotency-key": begun.key }, signal));
  const waiting = new Waiting();
  // An upload that begins again has brought no new byte until it has passed the place of the last one.
  for (let [failures, most, wait] = [0, begun.received, 0]; ; ) {
    let stored: StoredFile;
    try {
      stored = await (begun.id === undefined ? begin() : send(server, file, begun, {}, signal));
    } catch (error) {
      if (signal?.aborted || !(error instanceof Problem)) throw error;
      failures += 1;
      const isOffset = error.code === "upload_offset";
      const wish = (error.retryAfter ?? 0) * 1000;
      const mayContinue = error.mayPass || isOffset || error.code === "upload_broken";
      const waited = waiting.after(PIECE_TIMEOUT_MS + wait);
      // The client does not wait for a server that says "in an hour".
      const isTooLong = wish > Math.max(patience, PIECE_TIMEOUT_MS) || (failures >= FEWEST_TRIES && waited >= patience);
      if (!mayContinue || isTooLong) throw error;
      wait = isOffset ? 0 : Math.max(delay(failures), wish);
      await pause(wait, signal);
      await findOffset(server, begun, signal);
      continue;
    }
    begun.id = stored.id;
    begun.received = stored.received;
    if (stored.received > most) {
      most = stored.received;
      failures = 0;
      waiting.restart();
    }
    onProgress?.(stored.received);
    if (typeof stored.sha256 === "string") return stored;
  }
}

async function send(server: Server, file: Blob, { id, received }: Begun, given: Record<string, string>, signal?: AbortSignal): Promise<StoredFile> {
  const end = Math.min(received + PIECE_BYTES, file.size);
  const headers: Record<string, string> = { ...server.headers?.(), ...given, "content-type": "application/octet-stream" };
  // An empty file has no range; the server refuses it in its own words.
  if (file.size > 0) headers["content-range"] = `bytes ${received}-${end - 1}/${file.size}`;
  const [method, url] = id === undefined ? ["POST", "/v1/files"] : ["PATCH", path`/v1/files/${id}`];
  const piece = { method, headers, body: file.slice(received, end) };
  const answer = await follow(urlOf(server, url), piece, { timeout: PIECE_TIMEOUT_MS, signal, fetch: server.fetch });
  return jsonOf(answer) as StoredFile;
}

/** Asks the server how much of the file it has. Without an answer, the next request finds out. */
async function findOffset(server: Server, begun: Begun, signal?: AbortSignal): Promise<void> {
  if (begun.id === undefined) return;
  const url = urlOf(server, path`/v1/files/${begun.id}`);
  const watchdog = new Watchdog(OFFSET_TIMEOUT_MS, signal);
  try {
    const response = await reached((server.fetch ?? fetch)(url, { method: "HEAD", headers: server.headers?.(), signal: watchdog.signal }));
    const offset = response.headers.get("upload-offset");
    if (offset !== null) begun.received = Number(offset);
    // The server no longer has the upload: another one begins.
    if (response.status === 404) Object.assign(begun, notBegun(), { id: undefined });
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof Problem)) throw error;
  } finally {
    watchdog.end();
  }
}

/** Returns the header that names the file, whatever characters the name has. */
export function dispositionOf(name: string): string {
  const escaped = encodeURIComponent(name).replace(/['()*!]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename*=UTF-8''${escaped}`;
}
