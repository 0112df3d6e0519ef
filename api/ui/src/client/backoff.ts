// How long to wait before the next try, and the waiting.
import { TIMEOUT_MS } from "./processor";
import { onWake } from "./wake";

const FIRST_MS = 500;
/** A reader feels a server's return within two seconds. */
const LONGEST_MS = 1_500;
/** Between two tries of a client that has waited for `TIMEOUT_MS` in vain. */
const SELDOM_MS = 30_000;

/** Milliseconds before a try, after so many failures and after so long a wait. The delay is anywhere in the upper half of
 * its ceiling, so that the many clients of a returning server do not come at once. */
export function delayAfter(failures: number, waited = 0, random = Math.random()): number {
  const ceiling = waited < TIMEOUT_MS ? Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10)) : SELDOM_MS;
  return Math.round(ceiling * (0.5 + random / 2));
}

/** Waits, but not beyond the moment at which there is reason for hope, nor for somebody who has gone. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      stopListening();
      signal.removeEventListener("abort", abort);
    };
    const over = () => {
      end();
      resolve();
    };
    const abort = () => {
      end();
      reject(signal.reason);
    };
    const timer = setTimeout(over, ms);
    const stopListening = onWake(over);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort);
  });
}
