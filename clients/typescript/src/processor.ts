// The stream processor follows one response to its end, over one connection, and fails when it falls silent. Its
// callers reconnect.
import { Problem, problemOf, reached } from "./problem.js";
import { type Frame, FrameReader } from "./sse.js";
import { Watchdog, piecesOf } from "./watchdog.js";

/** Progress reports an event of an event stream, or a piece of a text, as it arrives. */
export type Progress = { kind: "event"; frame: Frame } | { kind: "text"; text: string };

/** The complete response. An event stream has only its events. */
export type Followed = { kind: "events" } | { kind: "json"; value: unknown } | { kind: "text"; text: string } | { kind: "nothing" };

export interface Exchange {
  /** The request fails after this many milliseconds of silence; heartbeats are no silence. */
  timeout?: number;
  signal?: AbortSignal;
  /** The head of a successful response, or a byte after it, has arrived; possibly of a heartbeat. */
  onLife?(): void;
  fetch?: typeof fetch;
}

export interface Following extends Exchange {
  /** The head of a successful response has arrived. */
  onOpen?(response: Response): void;
  onProgress?(progress: Progress): void;
  /** The caller has received all progress of one network read. */
  onPieceEnd?(): void;
  onError?(problem: Problem): void;
  onComplete?(answer: Followed): void;
}

export const TIMEOUT_MS = 240_000;

/**
 * Resolves with the complete response. Rejects with a `Problem`, or with the signal's reason, which `onError` does not
 * receive.
 */
export async function follow(url: string, init: RequestInit, following: Following = {}): Promise<Followed> {
  try {
    const answer = await exchange(url, init, following, (response, watchdog) => read(response, following, watchdog));
    following.onComplete?.(answer);
    return answer;
  } catch (error) {
    if (error instanceof Problem && !following.signal?.aborted) following.onError?.(error);
    throw error;
  }
}

/** Makes one request, and resolves with what `read` makes of a successful response. Rejects as `follow` does. */
export async function exchange<T>(url: string, init: RequestInit, options: Exchange, read: (response: Response, watchdog: Watchdog) => Promise<T>): Promise<T> {
  const signal = options.signal ?? init.signal ?? undefined;
  const watchdog = new Watchdog(options.timeout ?? TIMEOUT_MS, signal, options.onLife);
  try {
    const ask = options.fetch ?? fetch;
    const response = await reached(ask(url, { ...init, signal: watchdog.signal }));
    if (!response.ok) throw await problemOf(response);
    watchdog.feed();
    return await read(response, watchdog);
  } catch (error) {
    signal?.throwIfAborted();
    throw watchdog.problem ?? error;
  } finally {
    watchdog.end();
  }
}

/** Returns the value of a response that must be JSON. */
export function jsonOf(answer: Followed): unknown {
  if (answer.kind === "json") return answer.value;
  throw notJson();
}

/** Reads a response as bytes. */
export async function bytesOf(response: Response, watchdog: Watchdog): Promise<Blob> {
  const pieces: BlobPart[] = [];
  if (response.body) for await (const bytes of piecesOf(response.body, watchdog)) pieces.push(bytes as BlobPart);
  return new Blob(pieces, { type: response.headers.get("content-type") ?? "" });
}

async function read(response: Response, following: Following, watchdog: Watchdog): Promise<Followed> {
  following.onOpen?.(response);
  if (response.status === 204 || !response.body) return { kind: "nothing" };
  const type = response.headers.get("content-type") ?? "";
  if (/^text\/event-stream\b/.test(type)) {
    const frames = new FrameReader();
    for await (const bytes of piecesOf(response.body, watchdog)) {
      for (const frame of frames.read(bytes)) following.onProgress?.({ kind: "event", frame });
      following.onPieceEnd?.();
    }
    return { kind: "events" };
  }
  const isJson = /[/+]json\b/.test(type);
  const decoder = new TextDecoder();
  let whole = "";
  for await (const bytes of piecesOf(response.body, watchdog)) {
    const text = decoder.decode(bytes, { stream: true });
    whole += text;
    if (isJson || !text) continue;
    following.onProgress?.({ kind: "text", text });
    following.onPieceEnd?.();
  }
  return isJson ? { kind: "json", value: parsed(whole) } : { kind: "text", text: whole };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

const notJson = () => new Problem(200, "not_json", "The answer is not JSON.");
