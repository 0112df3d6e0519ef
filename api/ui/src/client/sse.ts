// This file reads server-sent events: bytes in, frames out. It reads streams of `fetch`, because `EventSource` can
// neither POST nor send headers. The reader drops comments, but the watchdog counts their bytes: a heartbeat is a sign
// of life.

export interface Frame {
  /** The newest `id` of the stream so far, as the standard says. */
  id?: string;
  event?: string;
  data: string;
}

/** A line ends with LF, CR or CRLF. A CR at the very end waits for the next byte, because an LF may belong to it. */
const END_OF_LINE = /\r\n|\n|\r(?!$)/g;

/**
 * Splits a stream into frames, however the network splits it. A frame without a blank line after it is incomplete, and
 * the reader drops it.
 */
export class FrameReader {
  #decoder = new TextDecoder();
  /** The pieces of the current incomplete line. */
  #rest: string[] = [];
  #data: string[] = [];
  #event: string | undefined;
  #id: string | undefined;

  /** Returns the frames that these bytes complete. */
  read(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    const piece = this.#decoder.decode(bytes, { stream: true });
    const mayEnd = /[\r\n]/.test(piece) || this.#rest.at(-1)?.endsWith("\r");
    this.#rest.push(piece);
    // The reader joins a long line once, and not with each of its pieces.
    if (!mayEnd) return frames;
    const text = this.#rest.join("");
    let begin = 0;
    for (const { 0: end, index } of text.matchAll(END_OF_LINE)) {
      const frame = this.#line(text.slice(begin, index));
      if (frame) frames.push(frame);
      begin = index + end.length;
    }
    this.#rest = [text.slice(begin)];
    return frames;
  }

  #line(line: string): Frame | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    if (field === "event") this.#event = value;
    if (field === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  #dispatch(): Frame | undefined {
    const [data, event] = [this.#data, this.#event];
    this.#data = [];
    this.#event = undefined;
    if (data.length === 0) return undefined;
    return { id: this.#id, event, data: data.join("\n") };
  }
}
