// A line: one stream of chunks over as many connections as it takes. Whoever reads it notices nothing of a network that was
// lost, a server that was started anew, or a laptop that slept.
import type { UIMessageChunk } from "ai";

import { delayAfter, pause } from "./backoff";
import { Fingerprint } from "./fingerprint";
import { merged } from "./merge";
import { CUT_OFF, Problem, SUPERSEDED } from "./problem";
import { TIMEOUT_MS, follow } from "./processor";
import { onWake } from "./wake";

/** Where the chunks come from. */
export interface Source {
  /** The request for what comes behind so many chunks. */
  request(count: number): { url: string; init: RequestInit };
  /** Whether every answer begins anew: then those that are known are passed over, if they are the same. */
  isReplay: boolean;
  onOpen?(response: Response): void;
  /** Whether asking again would be useless, or not what the user wants. */
  isFinal(problem: Problem): boolean;
}

export interface LineOptions {
  fetch?: typeof fetch;
  /** Milliseconds without a byte after which a connection is dead: three heartbeats. */
  silence?: number;
  /** Milliseconds without a byte, over all connections, after which it is given up. */
  patience?: number;
  onConnection?(state: "connected" | "reconnecting"): void;
  /** What was given is no longer the answer: a worker was lost, or the answer is another one. The stream ends here, and a
   * new replay has what counts. Without this, chunks are only ever appended. */
  onTakenBack?(attempt?: unknown): void;
  /** Each chunk as it comes; `isPast`, if a replay has brought it. */
  onChunk?(chunk: UIMessageChunk, isPast: boolean): void;
  delay?(failures: number): number;
}

/** Stands behind what a replay has brought at once; never part of a message, because it is transient. */
export const CAUGHT_UP = "data-caught-up";
const CHUNK_CAUGHT_UP: UIMessageChunk = { type: CAUGHT_UP, data: null, transient: true };

/** A pause in what comes that shows that the past is over, and how long to wait for one. */
const CAUGHT_UP_MS = 25;
const CAUGHT_UP_AT_LATEST_MS = 400;

const DONE = "[DONE]";

type End = "done" | "nothing" | "taken back" | "cut off";

export class Line {
  #count = 0;
  #known = new Fingerprint();
  #livedAt = Date.now();
  /** What the attempt that has taken something back says of itself. */
  #attempt: unknown;
  #controller!: ReadableStreamDefaultController<UIMessageChunk>;
  #hangUp = new AbortController();
  /** What a replay has brought so far, while it does. */
  #past: UIMessageChunk[] | undefined;
  #pastSince = 0;
  #pastTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly source: Source,
    readonly options: LineOptions = {},
    signal?: AbortSignal,
  ) {
    if (signal?.aborted) this.#hangUp.abort(signal.reason);
    signal?.addEventListener("abort", () => this.#hangUp.abort(signal.reason));
  }

  /** Resolves when the first connection is made; with `null`, if there is nothing to come. */
  open(): Promise<ReadableStream<UIMessageChunk> | null> {
    const stream = new ReadableStream<UIMessageChunk>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: () => this.#hangUp.abort(new DOMException("nobody reads any more", "AbortError")),
    });
    return new Promise((resolve, reject) => {
      this.#run(() => resolve(stream)).then(
        (end) => {
          resolve(end === "nothing" && this.#count === 0 ? null : stream);
          this.#finish(() => this.#controller.close());
        },
        (error: unknown) => {
          reject(error);
          this.#finish(() => this.#controller.error(error));
        },
      );
    });
  }

  async #run(onOpen: () => void): Promise<End> {
    for (let failures = 0; ; ) {
      const count = this.#count;
      let problem = new Problem(0, CUT_OFF, "The stream ended before its end.");
      try {
        const end = await this.#connect(onOpen);
        if (end === "taken back") break;
        if (end !== "cut off") return end;
      } catch (error) {
        if (this.#hangUp.signal.aborted || !(error instanceof Problem)) throw error;
        problem = error;
      }
      const isSilent = Date.now() - this.#livedAt >= (this.options.patience ?? TIMEOUT_MS);
      if (isSilent || this.source.isFinal(problem)) throw problem;
      this.options.onConnection?.("reconnecting");
      failures = this.#count > count ? 1 : failures + 1;
      const delay = (this.options.delay ?? delayAfter)(failures);
      await pause(Math.max(delay, (problem.retryAfter ?? 0) * 1000), this.#hangUp.signal);
    }
    if (!this.options.onTakenBack) throw new Problem(0, SUPERSEDED, "The answer is no longer what it was.");
    this.options.onTakenBack(this.#attempt);
    return "taken back";
  }

  /** One connection, to its end. */
  async #connect(onOpen: () => void): Promise<End> {
    const { url, init } = this.source.request(this.#count);
    const connection = new AbortController();
    const hangUp = () => connection.abort(this.#hangUp.signal.reason);
    this.#hangUp.signal.addEventListener("abort", hangUp);
    // The network is another one: what was open may never say another word.
    const stopListening = onWake((moment) => {
      if (moment === "online") connection.abort(new Problem(0, CUT_OFF, "The network has changed."));
    });
    const passage = new Passage(this.source.isReplay ? this.#count : 0, this.#known.toString());
    let end = "cut off" as End;
    const finish = (how: End) => {
      end = how;
      connection.abort(new Problem(0, CUT_OFF, "The stream has ended."));
    };
    this.#past = this.source.isReplay ? [] : undefined;
    this.#pastSince = Date.now();
    try {
      const answer = await follow(url, init, {
        fetch: this.options.fetch,
        timeout: this.options.silence ?? 45_000,
        signal: connection.signal,
        onOpen: (response) => {
          if (response.status === 204) return;
          if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
            throw new Problem(response.status, "not_a_stream", "The answer is no stream of events.");
          }
          this.source.onOpen?.(response);
          this.options.onConnection?.("connected");
          onOpen();
        },
        onLife: () => {
          this.#livedAt = Date.now();
        },
        onProgress: (progress) => {
          if (progress.kind !== "event" || end !== "cut off") return;
          const { data } = progress.frame;
          if (data === DONE) return finish(passage.isThrough ? "done" : "taken back");
          if (passage.passes(data)) return;
          if (passage.differs) return finish("taken back");
          if (this.#take(data)) finish("taken back");
        },
      });
      if (answer.kind === "nothing") end = "nothing";
    } catch (error) {
      if (end === "cut off" || this.#hangUp.signal.aborted) throw error;
    } finally {
      stopListening();
      this.#hangUp.signal.removeEventListener("abort", hangUp);
      this.#endPast();
    }
    // What could be had once cannot be had again: the run was cancelled meanwhile, or is long over.
    return end === "nothing" && this.#count > 0 ? "taken back" : end;
  }

  /** Gives a new chunk to the reader; whether it takes back what was given before. */
  #take(data: string): boolean {
    const chunk = JSON.parse(data) as UIMessageChunk;
    this.#count += 1;
    this.#known.add(data);
    this.options.onChunk?.(chunk, this.#past !== undefined);
    if (chunk.type === "data-attempt" && this.options.onTakenBack) {
      this.#attempt = chunk.data;
      return true;
    }
    if (!this.#past) {
      this.#controller.enqueue(chunk);
      return false;
    }
    this.#past.push(chunk);
    clearTimeout(this.#pastTimer);
    const left = this.#pastSince + CAUGHT_UP_AT_LATEST_MS - Date.now();
    this.#pastTimer = setTimeout(() => this.#endPast(), Math.max(0, Math.min(CAUGHT_UP_MS, left)));
    return false;
  }

  #endPast(): void {
    clearTimeout(this.#pastTimer);
    const past = this.#past;
    this.#past = undefined;
    if (!past || this.#hangUp.signal.aborted) return;
    for (const chunk of merged(past)) this.#controller.enqueue(chunk);
    if (past.length > 0) this.#controller.enqueue(CHUNK_CAUGHT_UP);
  }

  #finish(end: () => void): void {
    // A stream that was cancelled has no end of its own.
    if (!this.#hangUp.signal.aborted) end();
  }
}

/** The way through the chunks that are known already. */
class Passage {
  #seen = 0;
  #print = new Fingerprint();
  differs = false;

  constructor(
    readonly known: number,
    readonly expected: string,
  ) {}

  /** Whether this chunk is one of them. */
  passes(data: string): boolean {
    if (this.isThrough) return false;
    this.#seen += 1;
    this.#print.add(data);
    this.differs = this.#seen === this.known && this.#print.toString() !== this.expected;
    return !this.differs;
  }

  get isThrough(): boolean {
    return this.#seen === this.known;
  }
}
