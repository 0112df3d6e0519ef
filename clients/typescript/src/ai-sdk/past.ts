// The past is the part of a stream that a replay brings at once, before new chunks arrive. This class keeps it
// together, so that a view shows it in one step.
import type { UIMessageChunk } from "ai";

/**
 * The past arrives in large pieces without a pause. It ends after a pause, after pieces as small as a model's, or at
 * the latest after this time.
 */
const PAUSE_MS = 25;
const SMALL_PIECE = 2;
const AT_LATEST_MS = 400;

/** This chunk follows the past; it is transient, so it is never part of a message. */
export const CAUGHT_UP = "data-caught-up";
const CHUNK_CAUGHT_UP: UIMessageChunk = { type: CAUGHT_UP, data: null, transient: true };

export class Past {
  #chunks: UIMessageChunk[] = [];
  /** The time of the first chunk; until then the network is slow, not the past long. */
  #since: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The number of chunks in the newest piece, and of consecutive small pieces. */
  #inPiece = 0;
  #smallPieces = 0;
  isOver = false;

  constructor(readonly give: (chunks: UIMessageChunk[]) => void) {}

  /** The line calls this when the network brings another piece. */
  beginPiece(): void {
    this.#smallPieces = this.#inPiece > 0 && this.#inPiece <= SMALL_PIECE ? this.#smallPieces + 1 : 0;
    this.#inPiece = 0;
    if (this.#smallPieces > 1) this.end();
    // After a lost connection the server repeats known chunks, and perhaps no new chunk follows them.
    else if (this.#chunks.length > 0) this.#wait();
  }

  push(chunk: UIMessageChunk): void {
    this.#chunks.push(chunk);
    this.#inPiece += 1;
    this.#wait();
  }

  /** The connection is lost. The past keeps its chunks until the next connection has brought the later ones. */
  interrupt(): void {
    clearTimeout(this.#timer);
    this.#since = undefined;
    this.#inPiece = 0;
  }

  end(): void {
    clearTimeout(this.#timer);
    if (this.isOver) return;
    this.isOver = true;
    if (this.#chunks.length > 0) this.give([...this.#chunks, CHUNK_CAUGHT_UP]);
  }

  #wait(): void {
    if (this.isOver) return;
    clearTimeout(this.#timer);
    this.#since ??= Date.now();
    const left = this.#since + AT_LATEST_MS - Date.now();
    this.#timer = setTimeout(() => this.end(), Math.max(0, Math.min(PAUSE_MS, left)));
  }
}
