// The pauses between the tries of a program. They grow with each failure, and end after `patience` ms without success.
import { pause } from "./backoff.js";
import { ConnectionLost } from "./problem.js";

const LONGEST_MS = 15_000;
/** The first pause of a client that has no `retry:` of the server. */
const FIRST_MS = 250;

export class Pauses {
  /** The server's own `retry:`, in ms. */
  retry: number | undefined;
  #failures = 0;
  #since: number | undefined;

  constructor(readonly patience: number) {}

  succeed(): void {
    this.#failures = 0;
    this.#since = undefined;
  }

  /** Waits before the next try; rejects with `ConnectionLost` after the deadline, or with the signal's reason. */
  async next(cause: unknown, retryAfter: number | undefined, signal?: AbortSignal, cursor?: string): Promise<void> {
    const now = Date.now();
    this.#since ??= now;
    const ceiling = Math.min(LONGEST_MS, (this.retry ?? FIRST_MS) * 2 ** Math.min(this.#failures++, 20));
    // Clients of a returning server must not connect all at once.
    const ms = Math.max(ceiling * (0.5 + Math.random() / 2), (retryAfter ?? 0) * 1000);
    if (now + ms - this.#since > this.patience) throw new ConnectionLost((now - this.#since) / 1000, cursor, { cause });
    await pause(ms, signal);
  }
}
