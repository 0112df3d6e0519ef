// This file computes the delay before the next try, and waits for it.
import { TIMEOUT_MS } from "./processor.js";
import { onWake } from "./wake.js";

const FIRST_MS = 500;
/** With this ceiling a reader sees a returning server within two seconds. */
const LONGEST_MS = 1_500;
/** A client that has waited for `TIMEOUT_MS` without an answer pauses this long between two tries. */
const SELDOM_MS = 30_000;

/**
 * Returns the milliseconds before a try, given the number of failures and the time waited. The delay is anywhere in the
 * upper half of its ceiling, so the clients of a returning server do not all connect at once.
 */
export function delayAfter(failures: number, waited = 0, random = Math.random()): number {
  const ceiling = waited < TIMEOUT_MS ? Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)) : SELDOM_MS;
  return Math.round(ceiling * (0.5 + random / 2));
}

/** Waits for `ms`, but ends early when the browser wakes. Rejects with the signal's reason when the caller aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      stopListening();
      signal?.removeEventListener("abort", abort);
    };
    const over = () => {
      end();
      resolve();
    };
    const abort = () => {
      end();
      reject(signal?.reason);
    };
    const timer = setTimeout(over, ms);
    const stopListening = onWake(over);
    if (signal?.aborted) return abort();
    signal?.addEventListener("abort", abort);
  });
}
