// A line carries one stream of chunks over as many connections as it needs. Its reader does not notice a lost network,
// a restarted server, or a laptop that slept.
import type { UIMessageChunk } from "ai";

import { delayAfter, pause } from "../backoff.js";
import { Waiting } from "../patience.js";
import { CUT_OFF, Problem } from "../problem.js";
import { TIMEOUT_MS, follow } from "../processor.js";
import { type Frame, streamOf } from "../sse.js";
import { onWake } from "../wake.js";
import { SILENCE_MS } from "../watchdog.js";
import { merged } from "./merge.js";
import { Past } from "./past.js";

/** The newest event of a run that has arrived with all its chunks. */
export interface Position {
  runId: string;
  eventId: string;
}

/** The source says where the chunks come from. */
export interface Source {
  /** Returns the request for the chunks after a position, or for all chunks. */
  request(after?: Position): { url: string; init: RequestInit };
  /** Whether the first chunks are a replay. */
  isReplay: boolean;
  onOpen?(response: Response): void;
  /** Whether another request would be useless, or against the user's wish. */
  isFinal(problem: Problem): boolean;
}

export interface LineOptions {
  fetch?: typeof fetch;
  /** The line drops a connection after this many milliseconds without a byte; the default is `SILENCE_MS`. */
  silence?: number;
  /** The line fails after this many milliseconds without a byte, over all connections. */
  patience?: number;
  /** Whether the line waits without a deadline while the server is away. It then asks less often. */
  isEndless?: boolean;
  /** `wait` is the number of milliseconds until the next try. */
  onConnection?(state: "connected" | "reconnecting", wait?: number): void;
  /**
   * The line calls it when its chunks are no longer the answer: a worker was lost, or the server has another answer.
   * The stream ends here, and a new replay has the valid chunks. Without this callback, the stream fails with
   * `AnswerTakenBack`.
   */
  onTakenBack?(attempt?: unknown): void;
  /** The line calls it for each new chunk; a chunk that a replay brings has `isPast`. */
  onChunk?(chunk: UIMessageChunk, isPast: boolean): void;
  delay?(failures: number, waited: number): number;
}

/** The chunks so far are no longer the answer, because a worker was lost. A new replay has the valid ones. */
export class AnswerTakenBack extends Problem {
  override readonly name = "AnswerTakenBack";

  constructor() {
    super(0, "superseded", "The answer is no longer what it was.");
  }
}

const DONE = "[DONE]";

type End = "done" | "nothing" | "taken back" | "cut off";

export class Line {
  #runId: string | undefined;
  #eventId: string | undefined;
  /** The number of chunks so far. */
  #count = 0;
  /** The chunks of the event that is arriving: its last chunk has its id. A new connection repeats them. */
  #arriving: UIMessageChunk[] = [];
  /** The chunks that a replay brings at once, over all connections. */
  #past: Past | undefined;
  /** The chunks of one network read. */
  #piece: UIMessageChunk[] = [];
  /** Measures the wait for a byte, over all connections. */
  #waiting = new Waiting();
  /** The data of the attempt that has taken chunks back. */
  #attempt: unknown;
  #controller!: ReadableStreamDefaultController<UIMessageChunk>;
  #hangUp = new AbortController();

  constructor(
    readonly source: Source,
    readonly options: LineOptions = {},
    readonly signal?: AbortSignal,
  ) {
    if (!source.isReplay) return;
    this.#past = new Past((chunks) => {
      this.#piece.push(...chunks);
      this.#flush();
    });
  }

  /** Resolves when the first connection is open, or with `null` if the stream has no chunks. */
  open(): Promise<ReadableStream<UIMessageChunk> | null> {
    const stream = new ReadableStream<UIMessageChunk>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => this.#hangUp.abort(new DOMException("nobody reads any more", "AbortError")),
    });
    const abort = () => this.#hangUp.abort(this.signal?.reason);
    if (this.signal?.aborted) abort();
    this.signal?.addEventListener("abort", abort);
    return new Promise((resolve, reject) => {
      this.#run(() => resolve(stream))
        .then(
          (end) => {
            resolve(end === "nothing" ? null : stream);
            this.#past?.end();
            this.#hangUp.signal.throwIfAborted();
            this.#controller.close();
          },
          (error: unknown) => {
            this.#past?.end();
            throw error;
          },
        )
        .catch((error: unknown) => {
          reject(error);
          // An error discards unread chunks, so the line delays it. A cancelled stream ignores it.
          setTimeout(() => this.#controller.error(error));
        })
        .finally(() => this.signal?.removeEventListener("abort", abort));
    });
  }

  async #run(onOpen: () => void): Promise<End> {
    const silence = this.options.silence ?? SILENCE_MS;
    for (let [failures, wait] = [0, 0]; ; ) {
      const count = this.#count;
      let problem = new Problem(0, CUT_OFF, "The stream ended before its end.");
      try {
        const end = await this.#connect(silence, onOpen);
        if (end === "taken back") break;
        if (end !== "cut off") return end;
      } catch (error) {
        if (this.#hangUp.signal.aborted || !(error instanceof Problem)) throw error;
        // The server lost the event with a worker, and the run has ended without it.
        if (error.code === "invalid_event_id") break;
        problem = error;
      }
      const waited = this.#waiting.after(silence + wait);
      const wish = (problem.retryAfter ?? 0) * 1000;
      const isEndless = this.options.isEndless && problem.isAway;
      // The line does not wait for a server that says "in an hour", either.
      const isTooLong = !isEndless && waited + wish >= (this.options.patience ?? TIMEOUT_MS);
      if (isTooLong || this.source.isFinal(problem)) throw problem;
      failures = this.#count > count ? 1 : failures + 1;
      const delay = (this.options.delay ?? delayAfter)(failures, waited);
      wait = Math.max(delay, wish);
      this.options.onConnection?.("reconnecting", wait);
      await pause(wait, this.#hangUp.signal);
    }
    if (!this.options.onTakenBack) throw new AnswerTakenBack();
    this.options.onTakenBack(this.#attempt);
    return "taken back";
  }

  /** Runs one connection to its end. */
  async #connect(silence: number, onOpen: () => void): Promise<End> {
    const { url, init } = this.source.request(this.#position);
    const past = this.#past;
    const connection = new AbortController();
    let end = "cut off" as End;
    const finish = (how: End) => {
      end = how;
      connection.abort(new Problem(0, CUT_OFF, "The stream has ended."));
    };
    const take = ({ id, data }: Frame): void => {
      if (data === DONE) {
        this.#commit();
        return finish("done");
      }
      const chunk = JSON.parse(data) as UIMessageChunk;
      if (chunk.type === "data-attempt") {
        this.#attempt = chunk.data;
        return finish("taken back");
      }
      this.#arriving.push(chunk);
      if (id === undefined) return;
      this.#eventId = id;
      this.#commit();
    };
    const letGo = this.#hold(connection);
    try {
      const answer = await follow(url, init, {
        fetch: this.options.fetch,
        timeout: silence,
        signal: connection.signal,
        onOpen: (response) => {
          if (response.status === 204) return;
          streamOf(response);
          this.#runId ??= response.headers.get("x-run-id") ?? undefined;
          this.source.onOpen?.(response);
          this.options.onConnection?.("connected");
          onOpen();
        },
        onLife: () => {
          this.#waiting.restart();
          past?.beginPiece();
        },
        onProgress: (progress) => {
          if (progress.kind === "event" && end === "cut off") take(progress.frame);
        },
        onPieceEnd: () => this.#flush(),
      });
      if (answer.kind === "nothing") end = "nothing";
    } catch (error) {
      if (end === "cut off" || this.#hangUp.signal.aborted) throw error;
    } finally {
      letGo();
      past?.interrupt();
      this.#arriving = [];
      this.#flush();
    }
    // The run has ended, and the line has all its events.
    return end === "nothing" && this.#eventId !== undefined ? "done" : end;
  }

  get #position(): Position | undefined {
    return this.#runId && this.#eventId ? { runId: this.#runId, eventId: this.#eventId } : undefined;
  }

  /** Takes over the chunks of an event that has arrived completely. */
  #commit(): void {
    for (const chunk of this.#arriving.splice(0)) {
      this.#count += 1;
      const isPast = this.#past !== undefined && !this.#past.isOver;
      this.options.onChunk?.(chunk, isPast);
      if (isPast) this.#past?.push(chunk);
      else this.#piece.push(chunk);
    }
  }

  /** Ends a connection with the line, and when the network changes: an old connection may stay silent for ever. */
  #hold(connection: AbortController): () => void {
    const hangUp = () => connection.abort(this.#hangUp.signal.reason);
    this.#hangUp.signal.addEventListener("abort", hangUp);
    const stopListening = onWake((moment) => {
      if (moment === "online") connection.abort(new Problem(0, CUT_OFF, "The network has changed."));
    });
    return () => {
      stopListening();
      this.#hangUp.signal.removeEventListener("abort", hangUp);
    };
  }

  /** The line merges chunks that arrive at once: a page that folds thousands of chunks one by one freezes. */
  #flush(): void {
    if (!this.#hangUp.signal.aborted) merged(this.#piece).forEach((chunk) => this.#controller.enqueue(chunk));
    this.#piece = [];
  }
}
