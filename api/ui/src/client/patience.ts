// How long somebody waits. And asking until there is an answer, for questions that do no harm when they are put twice.
import { delayAfter, pause } from "./backoff";
import { Problem, isAway, mayPass } from "./problem";
import { TIMEOUT_MS } from "./processor";

/** After this long without a byte a connection is dead: three heartbeats. */
export const SILENCE_MS = 45_000;

export interface Patience {
  signal: AbortSignal;
  /** Called after each try that has failed, where another one follows after so many milliseconds. */
  onTrouble?(wait: number): void;
  /** Milliseconds. */
  patience?: number;
  /** Whether patience has no end while the server is away. */
  isEndless?: boolean;
}

/** How long one waits in vain. A computer that sleeps does not wait: whatever it waits for cannot come. */
export class Waiting {
  #ms = 0;
  #since = Date.now();

  /** There was a sign of life. */
  restart(): void {
    this.#ms = 0;
    this.#since = Date.now();
  }

  /** The milliseconds so far, after a try that takes so long at most; what is above that was sleep. */
  after(longest: number): number {
    const now = Date.now();
    this.#ms += Math.min(now - this.#since, longest);
    this.#since = now;
    return this.#ms;
  }
}

export async function patiently<T>(ask: () => Promise<T>, { signal, onTrouble, patience = TIMEOUT_MS, isEndless }: Patience): Promise<T> {
  const waiting = new Waiting();
  let wait = 0;
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || !(error instanceof Problem) || !mayPass(error)) throw error;
      const waited = waiting.after(SILENCE_MS + wait);
      wait = Math.max(delayAfter(failures, waited), (error.retryAfter ?? 0) * 1000);
      // A server that says "in an hour" is told of, and not waited for.
      if (waited + wait >= patience && !(isEndless && isAway(error))) throw error;
      onTrouble?.(wait);
      await pause(wait, signal);
    }
  }
}
