// This file reads server-sent events: bytes in, frames out. It reads streams of `fetch`, because `EventSource` can
// neither POST nor send headers. The reader drops comments, but the watchdog counts their bytes: a heartbeat is a sign
// of life.
import { createParser, type EventSourceMessage } from "eventsource-parser";

import { Problem } from "./problem.js";

/** No event of the server has more characters, so a longer one is none of its own. */
export const LONGEST_EVENT = 64 * 1024 * 1024;

/** `id` is present only if this frame has one. */
export type Frame = EventSourceMessage;

/** Returns the body of a response that must be an event stream. */
export function streamOf(response: Response): ReadableStream<Uint8Array> {
  const isStream = /^text\/event-stream\b/.test(response.headers.get("content-type") ?? "");
  if (response.body && isStream) return response.body;
  throw new Problem(response.status, "not_a_stream", "The answer is no stream of events.");
}

/** Splits a stream into frames, however the network splits it. It drops an incomplete frame. */
export class FrameReader {
  /** The server's newest `retry:`, in ms. */
  retry: number | undefined;
  #decoder = new TextDecoder();
  #frames: Frame[] = [];
  #parser = createParser({
    maxBufferSize: LONGEST_EVENT,
    onEvent: (frame) => void this.#frames.push(frame),
    onRetry: (ms) => void (this.retry = ms),
  });

  /** Returns the frames that these bytes complete; throws after an event that is too long. */
  read(bytes: Uint8Array): Frame[] {
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }));
    return this.#frames.splice(0);
  }
}
