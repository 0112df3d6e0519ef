// The stream processor follows one response to its end, over one connection, and fails when it falls silent. The
// transport reconnects, not this file.
import { Problem, SILENT, UNREACHABLE, problemOf } from "./problem";
import { type Frame, FrameReader } from "./sse";
import { onWake } from "./wake";

/** Progress reports an event of an event stream, or a piece of a text, as it arrives. */
export type Progress = { kind: "event"; frame: Frame } | { kind: "text"; text: string };

/** The complete response. An event stream has only its events. */
export type Answer = { kind: "events" } | { kind: "json"; value: unknown } | { kind: "text"; text: string } | { kind: "nothing" };

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
  onComplete?(answer: Answer): void;
  fetch?: typeof fetch;
}

export const TIMEOUT_MS = 240_000;

/**
 * Resolves with the complete response. Rejects with a `Problem`, or with the signal's reason, which `onError` does not
 * receive.
 */
export async function follow(url: string, init: RequestInit, following: Following = {}): Promise<Answer> {
  const watchdog = new Watchdog(following.timeout ?? TIMEOUT_MS, following);
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

async function read(url: string, init: RequestInit, following: Following, watchdog: Watchdog): Promise<Answer> {
  const ask = following.fetch ?? fetch;
  const response = await reached(ask(url, { ...init, signal: watchdog.signal }));
  watchdog.feed();
  if (!response.ok) throw await problemOf(response);
  following.onOpen?.(response);
  if (response.status === 204 || !response.body) return { kind: "nothing" };
  const type = response.headers.get("content-type") ?? "";
  if (/^text\/event-stream\b/.test(type)) {
    const frames = new FrameReader();
    await eachPiece(response.body, watchdog, (bytes) => {
      for (const frame of frames.read(bytes)) following.onProgress?.({ kind: "event", frame });
      following.onPieceEnd?.();
    });
    return { kind: "events" };
  }
  const isJson = /[/+]json\b/.test(type);
  const decoder = new TextDecoder();
  let whole = "";
  await eachPiece(response.body, watchdog, (bytes) => {
    const text = decoder.decode(bytes, { stream: true });
    whole += text;
    if (isJson || !text) return;
    following.onProgress?.({ kind: "text", text });
    following.onPieceEnd?.();
  });
  return isJson ? { kind: "json", value: parsed(whole) } : { kind: "text", text: whole };
}

async function eachPiece(body: ReadableStream<Uint8Array>, watchdog: Watchdog, take: (bytes: Uint8Array) => void): Promise<void> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  // Some engines do not end a read if the abort comes together with its last bytes.
  watchdog.signal.addEventListener("abort", leave);
  try {
    for (;;) {
      const { done, value } = await reached(reader.read());
      watchdog.signal.throwIfAborted();
      if (done) return;
      watchdog.feed();
      take(value);
    }
  } finally {
    // After the read ends for any reason, an unread connection must not stay open.
    leave();
  }
}

/** Any error of the network becomes one problem, whatever a browser calls it; an error of a callback does not. */
async function reached<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw new Problem(0, UNREACHABLE, error instanceof Error ? error.message : String(error));
  }
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

/**
 * The watchdog ends a request that has been silent for too long. It compares clock times, because a laptop's sleep
 * stops timers.
 */
class Watchdog {
  #abort = new AbortController();
  #fedAt = Date.now();
  #timer: ReturnType<typeof setTimeout>;
  #stopListening: () => void;
  problem: Problem | undefined;

  constructor(
    readonly timeout: number,
    readonly following: Following,
  ) {
    this.#timer = setTimeout(this.#look, timeout);
    this.#stopListening = onWake(this.#look);
    if (following.signal?.aborted) this.#hangUp();
    following.signal?.addEventListener("abort", this.#hangUp);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  feed(): void {
    this.#fedAt = Date.now();
    this.following.onLife?.();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#stopListening();
    this.following.signal?.removeEventListener("abort", this.#hangUp);
  }

  #hangUp = (): void => this.#abort.abort(this.following.signal?.reason);

  #look = (): void => {
    const left = this.#fedAt + this.timeout - Date.now();
    clearTimeout(this.#timer);
    if (left > 0) {
      this.#timer = setTimeout(this.#look, left);
      return;
    }
    this.problem = new Problem(0, SILENT, `Nothing came for ${Math.round(this.timeout / 1000)} s.`);
    this.#abort.abort(this.problem);
  };
}
