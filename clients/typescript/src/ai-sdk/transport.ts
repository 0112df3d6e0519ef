// This is Holdfast's transport for `useChat`. A send makes one run however often the transport repeats it, and a stream
// outlives its connection. The run's fate does not depend on this page.
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";

import { type Server, path, urlOf, zoneOf } from "../address.js";
import { newId } from "../id.js";
import { patiently } from "../patience.js";
import { CUT_OFF, Problem } from "../problem.js";
import { follow } from "../processor.js";
import { SILENCE_MS } from "../watchdog.js";
import { Line, type LineOptions, type Position, type Source } from "./line.js";

export interface TransportOptions extends LineOptions, Server {
  /** Returns additional fields of every question, such as `agentId` and `clientTools`. */
  body?(): object;
  /** Returns the chat's name for the server; by default the chat's id. */
  name?(chatId: string): string;
  /**
   * Posts a question by another route, and resolves with its run. The result is undefined for every question that the
   * chat's route takes; the chat may get another name before.
   */
  ask?(question: Question<UIMessage>): Promise<string | undefined> | undefined;
  /** The server has taken the question: from now on a run answers it, whatever happens to the page. */
  onAccepted?(runId: string): void;
}

export interface Question<M extends UIMessage> {
  message: M;
  /** The message that this one replaces. */
  messageId: string | undefined;
  /** The idempotency key. */
  key: string;
  signal: AbortSignal;
}

type Sending<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type Resuming<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0];

interface StreamRequest {
  url: string;
  init: RequestInit & { headers: Headers };
}

export class HoldfastTransport<M extends UIMessage> implements ChatTransport<M> {
  /** A resumed stream begins with the message's beginning. */
  readonly resumeStreamIsReplay = true;

  constructor(readonly options: TransportOptions = {}) {}

  /** Rejects with a `Problem` if the server refuses the question, or stays unreachable until the deadline. */
  async sendMessages(sending: Sending<M>): Promise<ReadableStream<UIMessageChunk>> {
    const stream = await new Line((await this.#askedOf(sending)) ?? this.#questionOf(sending), this.options, sending.abortSignal).open();
    if (!stream) throw new Problem(204, CUT_OFF, "The answer is no longer there to be streamed.");
    return stream;
  }

  /** Returns the stream of the chat's newest answer, from its beginning. */
  async reconnectToStream({ chatId, headers, abortSignal }: Resuming<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    const given = new Headers(headers);
    const source: Source = {
      isReplay: true,
      request: (after) => (after ? this.#continuation(after, given) : this.#get(this.#url(path`/api/chat/${this.#nameOf(chatId)}/stream`), given)),
      isFinal: (problem) => !problem.mayPass,
    };
    return new Line(source, this.options, abortSignal).open();
  }

  /**
   * Ends the answer of a chat that is at work, or that of `runId`; messages that wait are answered after it. The request
   * is repeated while the server is away. `stop()` of the SDK only hangs up.
   */
  async cancel(chatId: string, runId?: string): Promise<void> {
    const url = this.#url(path`/api/chat/${this.#nameOf(chatId)}/stop` + (runId === undefined ? "" : path`?runId=${runId}`));
    const { fetch, patience, headers } = this.options;
    await patiently(() => follow(url, { method: "POST", headers: headers?.() }, { timeout: SILENCE_MS, fetch }), { patience });
  }

  /** Returns the stream of a question that took another route. */
  async #askedOf({ trigger, messages, messageId, headers, abortSignal }: Sending<M>): Promise<Source | undefined> {
    const message = messages.at(-1);
    if (!message || trigger !== "submit-message") return undefined;
    const given = new Headers(headers);
    const key = given.get("idempotency-key") ?? newId();
    const runId = await this.options.ask?.({ message, messageId, key, signal: abortSignal ?? new AbortController().signal });
    if (runId === undefined) return undefined;
    this.options.onAccepted?.(runId);
    return {
      isReplay: false,
      request: (after) => (after ? this.#continuation(after, given) : this.#get(this.#eventsOf(runId), given)),
      isFinal: (problem) => !problem.mayPass,
    };
  }

  /** The transport posts the question until an event of its run has arrived. Then it follows the run after that event. */
  #questionOf({ chatId, messages, trigger, messageId, headers, body }: Sending<M>): Source {
    const given = new Headers(headers);
    // All tries share one key. The server therefore does not take a question twice if only its response was lost.
    if (!given.has("idempotency-key")) given.set("idempotency-key", newId());
    given.set("content-type", "application/json");
    for (const [name, value] of Object.entries(zoneOf(this.options))) if (!given.has(name)) given.set(name, value);
    const message = messages.at(-1);
    const isNew = trigger === "submit-message" && message?.role === "user";
    const request = { id: this.#nameOf(chatId), message: isNew ? message : withoutFiles(message), trigger, messageId };
    const question = JSON.stringify({ ...this.options.body?.(), ...request, ...body });
    let isAccepted = false;
    return {
      isReplay: false,
      request: (after) => {
        if (after) return this.#continuation(after, given);
        return { url: this.#url("/api/chat"), init: { method: "POST", headers: this.#headers(given), body: question } };
      },
      onOpen: (response) => {
        const runId = response.headers.get("x-run-id");
        if (isAccepted || !runId) return;
        isAccepted = true;
        this.options.onAccepted?.(runId);
      },
      // A writer decides about a message that the server limits; a reader of an answer has nothing to decide. A problem
      // that names a run means a failed run, and a retry with this key would fail again.
      isFinal: (problem) => !problem.mayPass || problem.run !== undefined || (!isAccepted && problem.status === 429),
    };
  }

  /** Returns the request for the events after the newest one; the server knows what was missed. */
  #continuation({ runId, eventId }: Position, given: Headers): StreamRequest {
    const { url, init } = this.#get(this.#eventsOf(runId), given);
    init.headers.set("last-event-id", eventId);
    return { url, init };
  }

  /** Returns a request for a stream, with the headers that its caller has given. */
  #get(url: string, given: Headers): StreamRequest {
    const headers = this.#headers(given);
    headers.delete("idempotency-key");
    headers.delete("content-type");
    headers.delete("time-zone");
    return { url, init: { headers } };
  }

  /** Those of the transport come last: they may be newer than the caller's. */
  #headers(given: Headers): Headers {
    const all = new Headers(given);
    for (const [name, value] of Object.entries(this.options.headers?.() ?? {})) all.set(name, value);
    return all;
  }

  #eventsOf(runId: string): string {
    return this.#url(`${path`/v1/runs/${runId}/events`}?wire=ai-sdk`);
  }

  #nameOf(chatId: string): string {
    return this.options.name?.(chatId) ?? chatId;
  }

  #url(path: string): string {
    return urlOf(this.options, path);
  }
}

/** Where a request only names a message that the server has, it needs none of its files. */
function withoutFiles<M extends UIMessage>(message: M | undefined): M | undefined {
  if (!message?.parts.some(({ type }) => type === "file")) return message;
  return { ...message, parts: message.parts.filter(({ type }) => type !== "file") };
}
