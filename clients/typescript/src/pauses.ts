// The pauses between the tries of a program. They grow with each failure, and end after `patience` ms without success.
import { pause } from "./backoff.js";
import { Waiting } from "./patience.js";
import { ConnectionLost, Problem } from "./problem.js";

const LONGEST_MS = 15_000;
/** The first pause of a client that has no `retry:` of the server. */
const FIRST_MS = 250;

export class Pauses {
  /** The server's own `retry:`, in ms. */
  retry: number | undefined;
  #failures = 0;
  #last = 0;
  readonly #waiting = new Waiting();

  /** A try takes at most `longest` ms. */
  constructor(
    readonly patience: number,
    readonly longest: number,
  ) {}

  succeed(): void {
    this.#failures = 0;
    this.#waiting.restart();
  }

  /** Waits before the next try; rejects with `ConnectionLost` after the deadline, or with the signal's reason. */
  async next(problem: Problem, signal?: AbortSignal, cursor?: string): Promise<void> {
    const wish = (problem.retryAfter ?? 0) * 1000;
    // The client does not wait for a server that says "in an hour".
    if (wish > this.patience) throw problem;
    const waited = this.#waiting.after(this.longest + this.#last);
    const ceiling = Math.min(LONGEST_MS, (this.retry ?? FIRST_MS) * 2 ** Math.min(this.#failures++, 20));
    // Clients of a returning server must not connect all at once.
    this.#last = Math.max(ceiling * (0.5 + Math.random() / 2), wish);
    if (waited + this.#last > this.patience) throw new ConnectionLost(waited / 1000, cursor, { cause: problem });
    await pause(this.#last, signal);
  }
}
