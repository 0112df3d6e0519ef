// A resumed stream repeats chunks that the line has, and a passage checks that they are identical. A killed server may
// have kept less than it had sent. Then other chunks follow a given index.
import { Fingerprint } from "./fingerprint";

/** The record of the received chunks, as far as the line needs it to find its position again. */
export class Known {
  count = 0;
  #all = new Fingerprint();
  /**
   * The newest chunk with an event's id, and the chunks from it on: a model may repeat its words, but an id is unique.
   */
  #marked = { id: undefined as string | undefined, index: 0, print: new Fingerprint() };

  add(id: string | undefined, data: string): void {
    if (id !== this.#marked.id) this.#marked = { id, index: this.count, print: new Fingerprint() };
    this.count += 1;
    this.#all.add(marked(id, data));
    this.#marked.print.add(marked(id, data));
  }

  /** The index from which the line continues, so that the first repeated chunk proves the position. */
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
  /** Whether the repeated chunks differ from the known ones. */
  differs = false;

  constructor(
    readonly length: number,
    readonly expected: string,
  ) {}

  /** Whether this chunk is one of the known ones. */
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
