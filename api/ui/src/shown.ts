// A view shows the newest read of the server, and above it all changes that this read may lack. A read lacks a change
// that the server had not confirmed when the read began, however late its answer arrives.
import type { Changes } from "./changes";

/** Orders the beginnings of reads and the confirmations of changes. */
let clock = 0;

export type Cause = "read" | "change";

export class Shown<T, C> {
  #value: T;
  /** The value without the pending changes. */
  #base: T;
  /** The confirmed changes that a read in flight may lack. */
  #made: { what: C; at: number }[] = [];
  #inFlight = 0;
  /** When the newest read began whose answer is in the value. */
  #readAt = 0;
  readonly #listeners = new Set<(cause: Cause) => void>();
  #stop?: () => void;

  /** `apply` changes a value in the same way however often it is called. */
  constructor(
    first: T,
    readonly changes: Changes<C>,
    readonly apply: (value: T, what: C) => T,
  ) {
    this.#base = first;
    this.#value = this.#withAll(changes.pending, first);
  }

  get value(): T {
    return this.#value;
  }

  /** Follows the changes as long as it has a listener. */
  subscribe(listener: (cause: Cause) => void): () => void {
    this.#listeners.add(listener);
    this.#stop ??= this.changes.subscribe((made) => this.#hear(made));
    this.#value = this.#withAll(this.changes.pending, this.#base);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  /** Reads the value, and ignores an answer that arrives after the answer of a later read. */
  read<R>(ask: () => Promise<R>, land: (before: T, answer: R) => T): Promise<void> {
    return this.#read(ask, land, {
      isLate: (begun) => begun < this.#readAt,
      onLanded: (begun) => (this.#readAt = begun),
    });
  }

  /** Reads what the value lacks, such as the next page. */
  readMore<R>(ask: () => Promise<R>, land: (before: T, answer: R) => T): Promise<void> {
    return this.#read(ask, land, { isLate: () => false, onLanded: () => {} });
  }

  async #read<R>(ask: () => Promise<R>, land: (before: T, answer: R) => T, order: { isLate(begun: number): boolean; onLanded(begun: number): void }): Promise<void> {
    const begun = ++clock;
    this.#inFlight += 1;
    try {
      const answer = await ask();
      if (order.isLate(begun)) return;
      order.onLanded(begun);
      const lacking = this.#made.filter(({ at }) => at > begun).map(({ what }) => what);
      this.#base = this.#withAll(lacking, land(this.#base, answer));
      this.#show("read");
    } catch (error) {
      // A later read knows better.
      if (!order.isLate(begun)) throw error;
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#made = [];
    }
  }

  #hear(made: C | undefined): void {
    if (made !== undefined) {
      this.#base = this.apply(this.#base, made);
      if (this.#inFlight > 0) this.#made.push({ what: made, at: ++clock });
    }
    this.#show("change");
  }

  #show(cause: Cause): void {
    this.#value = this.#withAll(this.changes.pending, this.#base);
    this.#listeners.forEach((listener) => listener(cause));
  }

  #withAll(changes: readonly C[], value: T): T {
    return changes.reduce((now, what) => this.apply(now, what), value);
  }
}
