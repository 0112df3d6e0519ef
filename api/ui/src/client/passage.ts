// The way through the chunks that are known already, when a stream is taken up again: they must be the very same. A server
// that was killed may have kept less than what it had said, and then the chunks behind a number are others.
import { Fingerprint } from "./fingerprint";

/** What has come so far, in as much as one needs to find the place again. */
export class Known {
  count = 0;
  #all = new Fingerprint();
  /** The newest chunk with an event's id, and what came from there on: the same words may be said twice, an id is not. */
  #marked = { id: undefined as string | undefined, index: 0, print: new Fingerprint() };

  add(id: string | undefined, data: string): void {
    if (id !== this.#marked.id) this.#marked = { id, index: this.count, print: new Fingerprint() };
    this.count += 1;
    this.#all.add(marked(id, data));
    this.#marked.print.add(marked(id, data));
  }

  /** Where to go on, so that the first that comes shows that it is the right place. */
  get from(): number {
    return this.#marked.index;
  }

  passageFromStart(): Passage {
    return new Passage(this.count, this.#all.toString());
  }

  passage(): Passage {
    return new Passage(this.count - this.from, this.#marked.print.toString());
  }
}

export class Passage {
  #seen = 0;
  #print = new Fingerprint();
  /** What has come is not what is known. */
  differs = false;

  constructor(
    readonly length: number,
    readonly expected: string,
  ) {}

  /** Whether this chunk is one of those that are known. */
  passes(id: string | undefined, data: string): boolean {
    if (this.isThrough) return false;
    this.#seen += 1;
    this.#print.add(marked(id, data));
    this.differs = this.isThrough && this.#print.toString() !== this.expected;
    return !this.differs;
  }

  get isThrough(): boolean {
    return this.#seen === this.length;
  }
}

function marked(id: string | undefined, data: string): string {
  return `${id} ${data}`;
}
