/** Server-sent events: the frames of one connection. */
import { StreamCut } from "./problem.js";

export interface Frame {
  id?: string;
  data?: string;
  /** In ms. */
  retry?: number;
}

/** No event of the server is longer, so a longer line is none of its own. */
const MAX_LINE = 64 * 1024 * 1024;

/** A connection without a byte for this long is dead: the server sends a heartbeat every 15 s. */
export const SILENCE_MS = 45_000;

/**
 * Yields the frames of a response, and then ends or throws with the connection. It drops an incomplete frame, which the next
 * connection repeats. It splits lines at LF only, as the server does.
 */
export async function* framesOf(response: Response, onByte: () => void): AsyncGenerator<Frame> {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let frame: Frame = {};
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onByte();
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop()!;
      if (rest.length > MAX_LINE) throw new StreamCut("A line is too long.");
      for (const line of lines) {
        const text = line.endsWith("\r") ? line.slice(0, -1) : line;
        if (text === "") {
          if (frame.data !== undefined || frame.retry !== undefined) yield frame;
          frame = {};
        } else {
          readField(text, frame);
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function readField(line: string, frame: Frame): void {
  const colon = line.indexOf(":");
  if (colon === 0) return;
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
  if (field === "data") frame.data = frame.data === undefined ? value : `${frame.data}\n${value}`;
  else if (field === "id") frame.id = value;
  else if (field === "retry" && /^\d+$/.test(value)) frame.retry = Number(value);
}

/** Aborts a connection after `SILENCE_MS` without a byte, and with the caller's signal. */
export class Watchdog {
  readonly #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #hangUp = () => this.#abort.abort(this.caller?.reason);

  constructor(readonly caller?: AbortSignal) {
    if (caller?.aborted) this.#hangUp();
    caller?.addEventListener("abort", this.#hangUp);
    this.feed();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  feed = (): void => {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(new StreamCut("The connection is silent.")), SILENCE_MS);
  };

  end(): void {
    clearTimeout(this.#timer);
    this.caller?.removeEventListener("abort", this.#hangUp);
    this.#abort.abort(new StreamCut("The connection is no longer read."));
  }
}
