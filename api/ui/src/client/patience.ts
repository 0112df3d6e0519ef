// Asking until there is an answer, for questions that do no harm when they are put twice.
import { delayAfter, pause } from "./backoff";
import { Problem, mayPass } from "./problem";
import { TIMEOUT_MS } from "./processor";

export interface Patience {
  signal: AbortSignal;
  /** Called once, if the first try has failed and another one may help. */
  onTrouble?(): void;
  /** Milliseconds. */
  patience?: number;
}

export async function patiently<T>(ask: () => Promise<T>, { signal, onTrouble, patience = TIMEOUT_MS }: Patience): Promise<T> {
  const begun = Date.now();
  for (let failures = 1; ; failures += 1) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || !(error instanceof Problem) || !mayPass(error)) throw error;
      const wait = Math.max(delayAfter(failures), (error.retryAfter ?? 0) * 1000);
      // A server that says "in an hour" is told of, and not waited for.
      if (Date.now() - begun + wait >= patience) throw error;
      if (failures === 1) onTrouble?.();
      await pause(wait, signal);
    }
  }
}
