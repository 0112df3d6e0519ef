// This file reads server-sent events: bytes in, frames out. It reads streams of `fetch`, because `EventSource` can
// neither POST nor send headers. The reader drops comments, but the watchdog counts their bytes: a heartbeat is a sign
// of life.
import { createParser, type EventSourceMessage } from "eventsource-parser";

/** `id` is present only if this frame has one. */
export type Frame = EventSourceMessage;

/** Splits a stream into frames, however the network splits it. It drops an incomplete frame. */
export class FrameReader {
  #decoder = new TextDecoder();
  #frames: Frame[] = [];
  #parser = createParser({ onEvent: (frame) => void this.#frames.push(frame) });

  /** Returns the frames that these bytes complete. */
  read(bytes: Uint8Array): Frame[] {
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }));
    return this.#frames.splice(0);
  }
}
