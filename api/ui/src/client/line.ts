// A line: one stream of chunks over as many connections as it takes. Whoever reads it notices nothing of a network that was
// lost, a server that was started anew, or a laptop that slept.
import type { UIMessageChunk } from "ai";

import { delayAfter, pause } from "./backoff";
import { merged } from "./merge";
import { Known } from "./passage";
import { Past } from "./past";
import { SILENCE_MS, Waiting } from "./patience";
import { CUT_OFF, Problem, SUPERSEDED, isAway } from "./problem";
import { TIMEOUT_MS, follow } from "./processor";
import type { Frame } from "./sse";
import { onWake } from "./wake";

/** Where the chunks come from. */
export interface Source {
  /** The request for the chunks from this one on. */
  request(from: number): { url: string; init: RequestInit };
  /** Whether every answer begins with the first chunk, wherever one wants to go on. */
  isReplay: boolean;
  onOpen?(response: Response): void;
  /** Whether asking again would be useless, or not what the user wants. */
  isFinal(problem: Problem): boolean;
}

export interface LineOptions {
  fetch?: typeof fetch;
  /** Milliseconds without a byte after which a connection is dead; `SILENCE_MS` unless told. */
  silence?: number;
  /** Milliseconds without a byte, over all connections, after which it is given up. */
  patience?: number;
  /** Whether patience has no end while the server is away. The line then asks less often. */
  isEndless?: boolean;
  /** With the milliseconds until the next try. */
  onConnection?(state: "connected" | "reconnecting", wait?: number): void;
  /** What was given is no longer the answer: a worker was lost, or the answer is another one. The stream ends here, and a
   * new replay has what counts. Without this, chunks are only ever appended. */
  onTakenBack?(attempt?: unknown): void;
  /** Each chunk as it comes; `isPast`, if a replay has brought it. */
  onChunk?(chunk: UIMessageChunk, isPast: boolean): void;
  delay?(failures: number, waited: number): number;
}

/** How long what is known may take to come once more. */
const PASSAGE_MS = 5_000;

const DONE = "[DONE]";

type End = "done" | "nothing" | "taken back" | "cut off";

export class Line {
  #known = new Known();
  /** What a replay brings at once, over all connections. */
  #past: Past | undefined;
  /** What one piece of the network has brought. */
  #piece: UIMessageChunk[] = [];
  /** For a byte, over all connections. */
  #waiting = new Waiting();
  /** What the attempt that has taken something back says of itself. */
  #attempt: unknown;
  #controller!: ReadableStreamDefaultController<UIMessageChunk>;
  #hangUp = new AbortController();

  constructor(
    readonly source: Source,
    readonly options: LineOptions = {},
    signal?: AbortSignal,
  ) {
    if (signal?.aborted) this.#hangUp.abort(signal.reason);
    signal?.addEventListener("abort", () => this.#hangUp.abort(signal.reason));
    if (!source.isReplay) return;
    this.#past = new Past((chunks) => {
      this.#piece.push(...chunks);
      this.#flush();
    });
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
          resolve(end === "nothing" && this.#known.count === 0 ? null : stream);
          this.#past?.end();
          this.#finish(() => this.#controller.close());
        },
        (error: unknown) => {
          reject(error);
          this.#past?.end();
          // An error takes along what nobody has read yet.
          setTimeout(() => this.#finish(() => this.#controller.error(error)));
        },
      );
    });
  }

  async #run(onOpen: () => void): Promise<End> {
    const silence = this.options.silence ?? SILENCE_MS;
    for (let [failures, wait] = [0, 0]; ; ) {
      const { count } = this.#known;
      let problem = new Problem(0, CUT_OFF, "The stream ended before its end.");
      try {
        const end = await this.#connect(silence, onOpen);
        if (end === "taken back") break;
        if (end !== "cut off") return end;
      } catch (error) {
        if (this.#hangUp.signal.aborted || !(error instanceof Problem)) throw error;
        // The server knows that what was counted is not there any more.
        if (error.code === "chunks_superseded") break;
        problem = error;
      }
      const waited = this.#waiting.after(silence + wait);
      const wish = (problem.retryAfter ?? 0) * 1000;
      const isEndless = this.options.isEndless && isAway(problem);
      // Nor is a server waited for that says "in an hour".
      const isTooLong = !isEndless && waited + wish >= (this.options.patience ?? TIMEOUT_MS);
      if (isTooLong || this.source.isFinal(problem)) throw problem;
      failures = this.#known.count > count ? 1 : failures + 1;
      const delay = (this.options.delay ?? delayAfter)(failures, waited);
      wait = Math.max(delay, wish);
      this.options.onConnection?.("reconnecting", wait);
      await pause(wait, this.#hangUp.signal);
    }
    if (!this.options.onTakenBack) throw new Problem(0, SUPERSEDED, "The answer is no longer what it was.");
    this.options.onTakenBack(this.#attempt);
    return "taken back";
  }

  /** One connection, to its end. */
  async #connect(silence: number, onOpen: () => void): Promise<End> {
    const { isReplay } = this.source;
    const { url, init } = this.source.request(isReplay ? 0 : this.#known.from);
    const passage = isReplay ? this.#known.passageFromStart() : this.#known.passage();
    const past = this.#past;
    const connection = new AbortController();
    let end = "cut off" as End;
    const finish = (how: End) => {
      end = how;
      connection.abort(new Problem(0, CUT_OFF, "The stream has ended."));
    };
    const take = ({ id, data }: Frame): void => {
      if (data === DONE) return finish(passage.isThrough ? "done" : "taken back");
      if (passage.passes(id, data)) return;
      if (passage.differs) return finish("taken back");
      this.#known.add(id, data);
      const chunk = JSON.parse(data) as UIMessageChunk;
      const isPast = past !== undefined && !past.isOver;
      this.options.onChunk?.(chunk, isPast);
      if (chunk.type === "data-attempt" && this.options.onTakenBack) {
        this.#attempt = chunk.data;
        return finish("taken back");
      }
      if (isPast) past.push(chunk);
      else this.#piece.push(chunk);
    };
    const letGo = this.#hold(connection);
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const answer = await follow(url, init, {
        fetch: this.options.fetch,
        timeout: silence,
        signal: connection.signal,
        onOpen: (response) => {
          if (response.status === 204) return;
          expectStream(response);
          this.source.onOpen?.(response);
          this.options.onConnection?.("connected");
          onOpen();
          timer = setTimeout(() => passage.isThrough || finish("taken back"), PASSAGE_MS);
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
      clearTimeout(timer);
      letGo();
      past?.interrupt();
      this.#flush();
    }
    // What could be had once cannot be had again: the run was cancelled meanwhile, or is long over.
    return end === "nothing" && this.#known.count > 0 ? "taken back" : end;
  }

  /** Ends a connection with the line, and when the network is another one: then it may never say another word. */
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

  /** What comes at once is given in as few chunks as will do: a page that folds thousands one by one stands still. */
  #flush(): void {
    if (!this.#hangUp.signal.aborted) merged(this.#piece).forEach((chunk) => this.#controller.enqueue(chunk));
    this.#piece = [];
  }

  #finish(end: () => void): void {
    // A stream that was cancelled has no end of its own.
    if (!this.#hangUp.signal.aborted) end();
  }
}

function expectStream(response: Response): void {
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) return;
  throw new Problem(response.status, "not_a_stream", "The answer is no stream of events.");
}
