// A fingerprint of the chunks that were received, to know whether a replay begins with the very same ones.

/** Two 32-bit FNV-1a sums with different starts: short, and good enough against chance. */
export class Fingerprint {
  #one = 0x811c9dc5;
  #two = 0x050c5d1f;

  add(text: string): void {
    for (let index = 0; index < text.length; index += 1) this.#mix(text.charCodeAt(index));
    // Between two texts, so that where they were cut counts.
    this.#mix(0x1ffff);
  }

  toString(): string {
    return `${this.#one >>> 0}.${this.#two >>> 0}`;
  }

  #mix(code: number): void {
    this.#one = Math.imul(this.#one ^ code, 0x01000193);
    this.#two = Math.imul(this.#two ^ code, 0x01000197);
  }
}
