// This file measures how long a caller waits. It also retries a request until it succeeds, for requests that a caller
// can safely repeat.
import { delayAfter, pause } from "./backoff.js";
import { Problem } from "./problem.js";
import { TIMEOUT_MS } from "./processor.js";
import { SILENCE_MS } from "./watchdog.js";

export interface Patience {
  signal?: AbortSignal;
  /** `patiently` calls it after each failed try, if another try follows after `wait` milliseconds. */
  onTrouble?(wait: number): void;
  /** The deadline in milliseconds. */
  patience?: number;
  /** Whether the caller waits without a deadline while the server is away. */
  isEndless?: boolean;
  /** Whether a further try cannot help, although a later one might. */
  isFinal?(problem: Problem): boolean;
}

/**
 * Measures how long a caller has waited without success. A sleeping computer does not count as waiting, because nothing
 * can reach it.
 */
export class Waiting {
  #ms = 0;
  #since = Date.now();

  /** The caller saw a sign of life. */
  restart(): void {
    this.#ms = 0;
    this.#since = Date.now();
  }

  /** Returns the milliseconds so far, after a try of at most `longest`; any time above that was sleep. */
  after(longest: number): number {
    const now = Date.now();
    this.#ms += Math.min(now - this.#since, longest);
    this.#since = now;
    return this.#ms;
  }
}

export async function patiently<T>(ask: () => Promise<T>, { signal, onTrouble, patience = TIMEOUT_MS, isEndless, isFinal }: Patience = {}): Promise<T> {
  const waiting = new Waiting();
  let wait = 0;
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      if (signal?.aborted || !(error instanceof Problem) || !error.mayPass || isFinal?.(error)) throw error;
      const waited = waiting.after(SILENCE_MS + wait);
      wait = Math.max(delayAfter(failures, waited), (error.retryAfter ?? 0) * 1000);
      // The caller fails on a server that says "in an hour", and does not wait for it.
      if (waited + wait >= patience && !(isEndless && error.isAway)) throw error;
      onTrouble?.(wait);
      await pause(wait, signal);
    }
  }
}
