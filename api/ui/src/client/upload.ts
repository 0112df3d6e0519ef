// This file uploads a file. A large one goes in pieces, so that an upload continues where its connection was lost.
import { delayAfter, pause } from "./backoff";
import { path } from "./call";
import { newId } from "./id";
import { Problem, UNREACHABLE, mayPass, problemFrom } from "./problem";
import { follow } from "./processor";
import { authorization } from "./token";

/** A larger file goes in pieces of this many bytes, the server's own parts. */
export const PIECE_BYTES = 1_048_576;

/** The page gives up after this many failures without a new byte; the reader can try again. */
const MOST_FAILURES = 5;

/** The time-out also suits a slow phone. */
const PIECE_TIMEOUT_MS = 120_000;

/** A file as the server has it. */
export interface StoredFile {
  id: string;
  name: string;
  media_type: string;
  bytes: number;
  /** `null` while the upload lasts. */
  sha256: string | null;
  /** The upload continues from this byte. */
  received: number;
}

/** An upload that has begun; another try continues it. */
export interface Begun {
  /** The idempotency key of the file's first request. */
  key: string;
  id?: string;
  received: number;
}

export const notBegun = (): Begun => ({ key: newId(), received: 0 });

export interface Uploading {
  signal: AbortSignal;
  /** The upload notes its progress here. */
  begun: Begun;
  onProgress?(received: number): void;
  delay?(failures: number): number;
}

/** Resolves with the stored file. Rejects with a `Problem`, or with the signal's reason. */
export async function uploadFile(file: Blob, name: string, { signal, begun, onProgress, delay = delayAfter }: Uploading): Promise<StoredFile> {
  // An upload that begins again has brought no new byte until it has passed the place of the last one.
  for (let [failures, most] = [0, begun.received]; ; ) {
    try {
      const stored = begun.id === undefined ? await begin(file, name, begun.key, signal) : await goOn(file, begun.id, begun.received, signal);
      begun.id = stored.id;
      if (stored.sha256 !== null) return stored;
      if (stored.received > most) failures = 0;
      most = Math.max(most, stored.received);
      begun.received = stored.received;
      onProgress?.(stored.received);
    } catch (error) {
      signal.throwIfAborted();
      const problem = problemFrom(error);
      failures += 1;
      const isOffset = problem.code === "upload_offset";
      if (failures >= MOST_FAILURES || !(mayPass(problem) || isOffset || problem.code === "upload_broken")) throw problem;
      if (!isOffset) await pause(Math.max(delay(failures), (problem.retryAfter ?? 0) * 1000), signal);
      await findOffset(begun, signal);
    }
  }
}

let newest: Promise<unknown> = Promise.resolve();

/**
 * Order matters: files begin one after another. The first answer may bring an anonymous user's cookie, and requests
 * beside it would belong to other users.
 */
function begin(file: Blob, name: string, key: string, signal: AbortSignal): Promise<StoredFile> {
  const headers = { "content-disposition": dispositionOf(name), "idempotency-key": key };
  const begun = newest.then(() => send("POST", "/v1/files", file, 0, headers, signal));
  newest = begun.catch(() => {});
  return begun;
}

function goOn(file: Blob, id: string, received: number, signal: AbortSignal): Promise<StoredFile> {
  return send("PATCH", path`/v1/files/${id}`, file, received, {}, signal);
}

async function send(method: string, url: string, file: Blob, from: number, given: Record<string, string>, signal: AbortSignal): Promise<StoredFile> {
  const end = Math.min(from + PIECE_BYTES, file.size);
  const headers: Record<string, string> = { ...authorization(), ...given, "content-type": "application/octet-stream" };
  // An empty file has no range; the server refuses it in its own words.
  if (file.size > 0) headers["content-range"] = `bytes ${from}-${end - 1}/${file.size}`;
  const answer = await follow(url, { method, headers, body: file.slice(from, end) }, { timeout: PIECE_TIMEOUT_MS, signal });
  if (answer.kind !== "json") throw new Problem(0, UNREACHABLE, "The answer is no file.");
  return answer.value as StoredFile;
}

/** Asks the server how much of the file it has. Without an answer, the next request finds out. */
async function findOffset(begun: Begun, signal: AbortSignal): Promise<void> {
  if (begun.id === undefined) return;
  try {
    const response = await fetch(path`/v1/files/${begun.id}`, { method: "HEAD", headers: authorization(), signal });
    const offset = response.headers.get("upload-offset");
    if (offset !== null) begun.received = Number(offset);
    // The server no longer has the upload: another one begins.
    if (response.status === 404) Object.assign(begun, notBegun(), { id: undefined });
  } catch {
    signal.throwIfAborted();
  }
}

/** Returns the header that names the file, whatever characters the name has. */
export function dispositionOf(name: string): string {
  const escaped = encodeURIComponent(name).replace(/['()*!]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename*=UTF-8''${escaped}`;
}
