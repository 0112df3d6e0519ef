// This file reads the body of a response, and ends a request that is silent for too long.
import { Problem, SILENT, reached } from "./problem.js";
import { onWake } from "./wake.js";

/** A connection without a byte for this long is dead: the server missed three heartbeats. */
export const SILENCE_MS = 45_000;

/** The watchdog compares clock times, because a laptop's sleep stops timers. It also aborts with the caller's signal. */
export class Watchdog {
  #abort = new AbortController();
  #fedAt = Date.now();
  #timer: ReturnType<typeof setTimeout>;
  #stopListening: () => void;
  problem: Problem | undefined;

  constructor(
    readonly timeout: number,
    readonly caller?: AbortSignal,
    readonly onFood?: () => void,
  ) {
    this.#timer = setTimeout(this.#look, timeout);
    this.#stopListening = onWake(this.#look);
    if (caller?.aborted) this.#hangUp();
    caller?.addEventListener("abort", this.#hangUp);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  feed(): void {
    this.#fedAt = Date.now();
    this.onFood?.();
  }

  /** Ends the request too: a response that its caller does not read must not stay open. */
  end(): void {
    clearTimeout(this.#timer);
    this.#stopListening();
    this.caller?.removeEventListener("abort", this.#hangUp);
    this.#abort.abort();
  }

  #hangUp = (): void => this.#abort.abort(this.caller?.reason);

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

/** Yields the pieces of a body as the network brings them, and closes the connection when the caller reads no further. */
export async function* piecesOf(body: ReadableStream<Uint8Array>, watchdog: Watchdog): AsyncGenerator<Uint8Array, void, void> {
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
      yield value;
    }
  } finally {
    leave();
  }
}
