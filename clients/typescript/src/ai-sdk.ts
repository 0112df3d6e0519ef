/** A transport for `useChat` of the AI SDK 7, whose answers survive lost connections. */
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";

import { framesOf, Watchdog } from "./frames.js";
import { Pauses } from "./pauses.js";
import { Problem, problemOf, StreamCut } from "./problem.js";

export interface TransportOptions {
  /** The address of the server; by default the page's own. */
  baseUrl?: string;
  /** Headers of every request, such as the caller's authorization. */
  headers?: () => Record<string, string>;
  /** Further fields of every message, such as `agentId` and `clientTools`. */
  body?: () => object;
  /** How long the transport waits for a server that is away, in ms; the default is 120,000. */
  patience?: number;
  fetch?: typeof fetch;
}

/**
 * A worker was lost, and the chunks so far are no longer the answer: call `clearError()`, then `resumeStream()`, which brings the
 * valid ones.
 */
export class AnswerTakenBack extends Error {
  override readonly name = "AnswerTakenBack";
}

type Sending<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type Resuming<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0];

interface Request {
  url: string;
  init: RequestInit;
}

/** The newest event that has arrived with all its chunks. */
interface Position {
  runId: string;
  eventId: string;
}

export class HoldfastTransport<M extends UIMessage = UIMessage> implements ChatTransport<M> {
  /** A resumed stream begins with the message's beginning. */
  readonly resumeStreamIsReplay = true;

  constructor(readonly options: TransportOptions = {}) {}

  /** Sends the newest message. The server has the others. All tries share one idempotency key, so they make one run. */
  async sendMessages({ chatId, messages, trigger, messageId, body, headers, abortSignal }: Sending<M>): Promise<ReadableStream<UIMessageChunk>> {
    const given = new Headers(headers);
    if (!given.has("idempotency-key")) given.set("idempotency-key", crypto.randomUUID());
    given.set("content-type", "application/json");
    const message = JSON.stringify({ ...this.options.body?.(), ...body, id: chatId, message: messages.at(-1), trigger, messageId });
    const first = (): Request => {
      const all = new Headers(given);
      for (const [name, value] of Object.entries(this.options.headers?.() ?? {})) all.set(name, value);
      return { url: this.#url("/api/chat"), init: { method: "POST", headers: all, body: message } };
    };
    const stream = await this.#open(first, abortSignal);
    if (!stream) throw new Problem(204, "no_answer", "The answer is no longer there to be streamed.");
    return stream;
  }

  /** Returns the stream of the chat's newest answer, from its beginning; null if there is none. */
  reconnectToStream({ chatId, abortSignal }: Resuming<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    const url = this.#url(`/api/chat/${encodeURIComponent(chatId)}/stream`);
    return this.#open(() => ({ url, init: { headers: this.options.headers?.() } }), abortSignal);
  }

  /** Cancels the runs of a chat; `stop()` of the SDK only hangs up. */
  async cancel(chatId: string): Promise<void> {
    const url = this.#url(`/api/chat/${encodeURIComponent(chatId)}/stop`);
    const response = await this.#fetch(url, { method: "POST", headers: this.options.headers?.() });
    if (!response.ok) throw await problemOf(response);
  }

  async #open(first: () => Request, signal: AbortSignal | undefined): Promise<ReadableStream<UIMessageChunk> | null> {
    const stopped = new AbortController();
    const all = signal ? AbortSignal.any([signal, stopped.signal]) : stopped.signal;
    const chunks = this.#chunks(first, all);
    // The first step ends when the first connection is open.
    const opened = await chunks.next();
    if (opened.done) return null;
    return new ReadableStream<UIMessageChunk>({
      async pull(controller) {
        try {
          const { done, value } = await chunks.next();
          if (done) controller.close();
          else if (value !== "opened") controller.enqueue(value);
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: () => stopped.abort(),
    });
  }

  /** Yields `opened` once, then the chunks of one answer, over as many connections as they need. */
  async *#chunks(first: () => Request, signal: AbortSignal): AsyncGenerator<UIMessageChunk | "opened", void, void> {
    const pauses = new Pauses(this.options.patience ?? 120_000);
    let position: Position | undefined;
    for (let isOpen = false; ; ) {
      const watchdog = new Watchdog(signal);
      let cause: unknown = new StreamCut("The stream ended before the answer.");
      try {
        const { url, init } = position ? this.#continuation(position) : first();
        const response = await this.#fetch(url, { ...init, signal: watchdog.signal });
        if (response.status === 204) return;
        if (!response.ok) throw await problemOf(response);
        const runId = position?.runId ?? response.headers.get("x-run-id") ?? undefined;
        pauses.succeed();
        if (!isOpen) yield "opened";
        isOpen = true;
        // The last chunk of an event has its id. A new connection repeats the chunks of an event without one.
        let arriving: UIMessageChunk[] = [];
        for await (const { id, data, retry } of framesOf(response, watchdog.feed)) {
          pauses.retry = retry ?? pauses.retry;
          if (data === undefined) continue;
          if (data === "[DONE]") {
            yield* arriving;
            return;
          }
          const chunk = JSON.parse(data) as UIMessageChunk;
          if (chunk.type === "data-attempt") throw new AnswerTakenBack("A worker was lost, and another one repeats its text.");
          arriving.push(chunk);
          if (id === undefined || runId === undefined) continue;
          position = { runId, eventId: id };
          yield* arriving;
          arriving = [];
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof AnswerTakenBack) throw error;
        if (error instanceof Problem && isFinal(error, isOpen)) throw error;
        cause = error;
      } finally {
        watchdog.end();
      }
      await pauses.next(cause, cause instanceof Problem ? cause.retryAfter : undefined, signal, position?.eventId);
    }
  }

  #continuation({ runId, eventId }: Position): Request {
    const headers = { ...this.options.headers?.(), "last-event-id": eventId };
    return { url: this.#url(`/v1/runs/${encodeURIComponent(runId)}/events?wire=ai-sdk`), init: { headers } };
  }

  #url(path: string): string {
    return `${this.options.baseUrl?.replace(/\/+$/, "") ?? ""}${path}`;
  }

  #fetch(url: string, init: RequestInit): Promise<Response> {
    return this.options.fetch ? this.options.fetch(url, init) : fetch(url, init);
  }
}

/** A problem that names a run means a failed run. A writer decides about a message that the server limits. */
function isFinal(problem: Problem, isOpen: boolean): boolean {
  if (problem.code === "invalid_event_id") throw new AnswerTakenBack("The server lost the newest events with a worker.");
  return !problem.mayPass || problem.body.run !== undefined || (!isOpen && problem.status === 429);
}
