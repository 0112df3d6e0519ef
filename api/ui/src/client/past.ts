// The past: what a replay brings at once before it goes on with what is new. It is kept together, so that whoever shows it
// shows it whole.
import type { UIMessageChunk } from "ai";

/** It comes in large pieces without a pause: it is over after a pause, after pieces as small as a model's, or anyway. */
const PAUSE_MS = 25;
const SMALL_PIECE = 2;
const AT_LATEST_MS = 400;

/** Stands behind the past; never part of a message, because it is transient. */
export const CAUGHT_UP = "data-caught-up";
const CHUNK_CAUGHT_UP: UIMessageChunk = { type: CAUGHT_UP, data: null, transient: true };

export class Past {
  #chunks: UIMessageChunk[] = [];
  /** When its first chunk came: until then it is the network that is slow. */
  #since: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Chunks in the newest piece, and how many small ones came one after the other. */
  #inPiece = 0;
  #smallPieces = 0;
  isOver = false;

  constructor(readonly give: (chunks: UIMessageChunk[]) => void) {}

  /** The network brings another piece. */
  beginPiece(): void {
    this.#smallPieces = this.#inPiece > 0 && this.#inPiece <= SMALL_PIECE ? this.#smallPieces + 1 : 0;
    this.#inPiece = 0;
    if (this.#smallPieces > 1) this.end();
    // What is known already comes once more after a cut, and nothing may be behind it.
    else if (this.#chunks.length > 0) this.#wait();
  }

  push(chunk: UIMessageChunk): void {
    this.#chunks.push(chunk);
    this.#inPiece += 1;
    this.#wait();
  }

  /** The connection is lost; what it has brought is kept until the next one has brought the rest. */
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
