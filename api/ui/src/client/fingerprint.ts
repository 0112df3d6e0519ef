// A fingerprint of the received chunks shows whether a replay begins with exactly these chunks.

/** It uses two 32-bit FNV-1a sums with different starts: they are short, and a collision by chance is improbable. */
export class Fingerprint {
  #one = 0x811c9dc5;
  #two = 0x050c5d1f;

  add(text: string): void {
    for (let index = 0; index < text.length; index += 1) this.#mix(text.charCodeAt(index));
    // This mark separates two texts, so that the fingerprint depends on where the chunks begin.
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
