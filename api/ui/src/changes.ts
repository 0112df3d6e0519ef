// Changes that the page shows before the server has confirmed them. A domain, such as the workspace's entities, has one
// `Changes`, and each view of it a `Shown` (shown.ts), which applies them to what it has read.

/** Hears of a change that the server has made; without one, the pending changes are different ones. */
type Listener<C> = (made?: C) => void;

export class Changes<C> {
  #pending: readonly { what: C }[] = [];
  readonly #listeners = new Set<Listener<C>>();
  readonly #lines = new Map<string, Promise<unknown>>();

  /** The changes that the server has not confirmed, in the order in which the reader has made them. */
  get pending(): readonly C[] {
    return this.#pending.map(({ what }) => what);
  }

  subscribe(listener: Listener<C>): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Shows a change, and sends it. `send` resolves with the change that the server has made. If it rejects, the page takes
   * this change back, and no later one. The changes of one key are sent one after the other, so that the server keeps
   * their order.
   */
  async make(key: string, what: C, send: () => Promise<C>): Promise<void> {
    const change = { what };
    this.#pending = [...this.#pending, change];
    this.#hear();
    let made: C | undefined;
    try {
      made = await this.#inLine(key, send);
    } finally {
      this.#pending = this.#pending.filter((other) => other !== change);
      this.#hear(made);
    }
  }

  /** Shows a change that the server has made. */
  tell(made: C): void {
    this.#hear(made);
  }

  #hear(made?: C): void {
    this.#listeners.forEach((listener) => listener(made));
  }

  async #inLine(key: string, send: () => Promise<C>): Promise<C> {
    const before = this.#lines.get(key);
    const mine = before ? before.then(send, send) : send();
    this.#lines.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#lines.get(key) === mine) this.#lines.delete(key);
    }
  }
}

/** For a view of what this page never changes. */
export const noChanges = new Changes<never>();
