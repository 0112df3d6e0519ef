// The transport of `useChat` for Holdfast: a send makes one run however often it has to be repeated, and a stream outlives its
// connection. What becomes of a run does not depend on this page.
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";

import { newId } from "./id";
import { Line, type LineOptions, type Source } from "./line";
import { CUT_OFF, Problem, mayPass } from "./problem";

export interface TransportOptions extends LineOptions {
  /** `/api/chat` unless it is elsewhere. */
  api?: string;
  /** For every request, such as who is asking. */
  headers?(): Record<string, string>;
  /** For every question, such as `agentId` and `clientTools`. */
  body?(): object;
  /** The server has taken the question: from now on it is answered, whatever happens here. */
  onAccepted?(streamId: string): void;
}

type Sending<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];
type Resuming<M extends UIMessage> = Parameters<ChatTransport<M>["reconnectToStream"]>[0];

export class HoldfastTransport<M extends UIMessage> implements ChatTransport<M> {
  /** A resumed stream begins with the message's beginning. */
  readonly resumeStreamIsReplay = true;

  constructor(readonly options: TransportOptions = {}) {}

  /** Rejects with a `Problem` if the question was refused, or nobody could be reached for as long as patience lasts. */
  async sendMessages(sending: Sending<M>): Promise<ReadableStream<UIMessageChunk>> {
    const stream = await new Line(this.#questionOf(sending), this.options, sending.abortSignal).open();
    if (!stream) throw new Problem(204, CUT_OFF, "The answer is no longer there to be streamed.");
    return stream;
  }

  /** The chat's newest answer from its beginning, and what is to come. */
  async reconnectToStream({ chatId, abortSignal }: Resuming<M>): Promise<ReadableStream<UIMessageChunk> | null> {
    const source: Source = {
      isReplay: true,
      request: () => ({ url: this.#url(chatId), init: { headers: this.options.headers?.() } }),
      isFinal: (problem) => !mayPass(problem),
    };
    return new Line(source, this.options, abortSignal).open();
  }

  /** The question is put until it is taken; then its stream is followed by its own name, from about where it was cut. */
  #questionOf({ chatId, messages, trigger, messageId, headers, body }: Sending<M>): Source {
    const given = new Headers(headers);
    // One key for all tries, so that the question that arrived, and whose answer did not, is not put twice.
    if (!given.has("idempotency-key")) given.set("idempotency-key", newId());
    given.set("content-type", "application/json");
    const said = { id: chatId, message: messages.at(-1), trigger, messageId };
    const question = JSON.stringify({ ...this.options.body?.(), ...said, ...body });
    let streamId: string | undefined;
    return {
      isReplay: false,
      request: (from) => {
        const own = this.options.headers?.() ?? {};
        if (streamId) return { url: `${this.#url(streamId)}?startIndex=${from}`, init: { headers: own } };
        const all = new Headers(given);
        for (const [name, value] of Object.entries(own)) all.set(name, value);
        return { url: this.#api, init: { method: "POST", headers: all, body: question } };
      },
      onOpen: (response) => {
        const named = response.headers.get("x-workflow-run-id") ?? undefined;
        if (streamId || !named) return;
        streamId = named;
        this.options.onAccepted?.(named);
      },
      // A writer decides what becomes of a message that the server limits; a reader of an answer has nothing to decide.
      // The run of a question that names one has failed, and the same key would only bring the same failure.
      isFinal: (problem) => !mayPass(problem) || (!streamId && (problem.status === 429 || problem.run !== undefined)),
    };
  }

  get #api(): string {
    return this.options.api ?? "/api/chat";
  }

  #url(id: string): string {
    return `${this.#api}/${encodeURIComponent(id)}/stream`;
  }
}
