// How long to wait before the next try, and the waiting.
import { onWake } from "./wake";

const FIRST_MS = 500;
const LONGEST_MS = 8_000;

/** Milliseconds before a try, after so many that failed: doubling, and anywhere in its upper half, so that the many clients
 * of a server that comes back do not come at once. */
export function delayAfter(failures: number, random = Math.random()): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
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
