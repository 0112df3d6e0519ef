// Server-sent events: bytes in, frames out. Written for streams of `fetch`, because `EventSource` can neither POST nor send
// headers. Comments are told as well: a heartbeat is a sign of life.

export interface Frame {
  /** The newest `id` of the stream so far, as the standard has it. */
  id?: string;
  event?: string;
  data: string;
}

/** Takes a stream apart, however it was cut. What has no blank line behind it was cut off, and is no frame. */
export class FrameReader {
  #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];
  #event: string | undefined;
  #id: string | undefined;

  /** The frames that these bytes complete. */
  read(bytes: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    let begin = 0;
    for (;;) {
      const end = endOfLine(text, begin);
      if (end === undefined) break;
      const frame = this.#line(text.slice(begin, end.at));
      if (frame) frames.push(frame);
      begin = end.next;
    }
    this.#rest = text.slice(begin);
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

/** LF, CR or CRLF. A CR at the very end waits for what comes, because an LF may belong to it. */
function endOfLine(text: string, from: number): { at: number; next: number } | undefined {
  const lf = text.indexOf("\n", from);
  const cr = text.indexOf("\r", from);
  if (cr >= 0 && (lf < 0 || cr < lf)) {
    if (cr === text.length - 1) return undefined;
    return { at: cr, next: text[cr + 1] === "\n" ? cr + 2 : cr + 1 };
  }
  return lf < 0 ? undefined : { at: lf, next: lf + 1 };
}
