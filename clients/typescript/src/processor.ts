// The stream processor follows one response to its end, over one connection, and fails when it falls silent. Its
// callers reconnect.
import { Problem, problemOf, reached } from "./problem.js";
import { type Frame, FrameReader } from "./sse.js";
import { Watchdog, piecesOf } from "./watchdog.js";

/** Progress reports an event of an event stream, or a piece of a text, as it arrives. */
export type Progress = { kind: "event"; frame: Frame } | { kind: "text"; text: string };

/** The complete response. An event stream has only its events. */
export type Followed = { kind: "events" } | { kind: "json"; value: unknown } | { kind: "text"; text: string } | { kind: "nothing" };

export interface Following {
  /** The processor fails after this many milliseconds of silence; heartbeats are no silence. */
  timeout?: number;
  signal?: AbortSignal;
  /** The head of a successful response has arrived. */
  onOpen?(response: Response): void;
  /** A byte has arrived, possibly of a heartbeat. */
  onLife?(): void;
  onProgress?(progress: Progress): void;
  /** The caller has received all progress of one network read. */
  onPieceEnd?(): void;
  onError?(problem: Problem): void;
  onComplete?(answer: Followed): void;
  fetch?: typeof fetch;
}

export const TIMEOUT_MS = 240_000;

/**
 * Resolves with the complete response. Rejects with a `Problem`, or with the signal's reason, which `onError` does not
 * receive.
 */
export async function follow(url: string, init: RequestInit, following: Following = {}): Promise<Followed> {
  const watchdog = new Watchdog(following.timeout ?? TIMEOUT_MS, following.signal, following.onLife);
  try {
    const answer = await read(url, init, following, watchdog);
    following.onComplete?.(answer);
    return answer;
  } catch (error) {
    if (following.signal?.aborted) throw following.signal.reason;
    const problem = watchdog.problem ?? toldOf(error);
    following.onError?.(problem);
    throw problem;
  } finally {
    watchdog.end();
  }
}

async function read(url: string, init: RequestInit, following: Following, watchdog: Watchdog): Promise<Followed> {
  const ask = following.fetch ?? fetch;
  const response = await reached(ask(url, { ...init, signal: watchdog.signal }));
  watchdog.feed();
  if (!response.ok) throw await problemOf(response);
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

function toldOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  throw error;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(0, "not_json", "The answer is not JSON.");
  }
}
