// Server-sent events: bytes in, frames out. Written for streams of `fetch`, because `EventSource` can neither POST nor send
// headers. Comments are told as well: a heartbeat is a sign of life.

export interface Frame {
  /** The newest `id` of the stream so far, as the standard has it. */
  id?: string;
  event?: string;
  data: string;
}

/** LF, CR or CRLF. A CR at the very end waits for what comes, because an LF may belong to it. */
const END_OF_LINE = /\r\n|\n|\r(?!$)/g;

/** Takes a stream apart, however it was cut. What has no blank line behind it was cut off, and is no frame. */
export class FrameReader {
  #decoder = new TextDecoder();
  /** The pieces of a line that has no end yet. */
  #rest: string[] = [];
  #data: string[] = [];
  #event: string | undefined;
  #id: string | undefined;

  /** The frames that these bytes complete. */
  read(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    const piece = this.#decoder.decode(bytes, { stream: true });
    const mayEnd = /[\r\n]/.test(piece) || this.#rest.at(-1)?.endsWith("\r");
    this.#rest.push(piece);
    // A long line is put together once, and not with each of its pieces.
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
