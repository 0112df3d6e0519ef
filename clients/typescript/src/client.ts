/** The client of one server, as one user. */
import { type Server, path, urlOf, zoneOf } from "./address.js";
import { newId } from "./id.js";
import { Pauses } from "./pauses.js";
import { Problem, reached } from "./problem.js";
import { type Exchange, bytesOf, exchange, follow, jsonOf } from "./processor.js";
import { followRun } from "./stream.js";
import { type Uploading, uploadFile } from "./upload.js";
import type * as wire from "./wire.js";

export interface ClientOptions extends Server {
  /** How long the client waits for a server that is away, in ms; the default is 120,000. */
  patience?: number;
}

/** `key` is the idempotency key: with a key of its own, a program that starts again makes no second run. */
export type NewRun = wire.NewRunBody & { key?: string; signal?: AbortSignal };
export type NewMessage = wire.NewMessageBody & { key?: string; signal?: AbortSignal };

/** The server answers within 30 s, `wait` too. */
const CALL_TIMEOUT_MS = 60_000;

interface Call {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  query?: Record<string, string | undefined>;
  /** Whether a repetition has no second effect. */
  isRepeatable?: boolean;
  signal?: AbortSignal;
}

/**
 * Methods repeat a request while the server is away, for `patience` ms, if a repetition has no second effect. They reject with
 * `Problem` if the server refuses, and with `ConnectionLost` after `patience`.
 */
export class HoldfastClient {
  readonly #patience: number;

  constructor(readonly options: ClientOptions = {}) {
    this.#patience = options.patience ?? 120_000;
  }

  /** Posts a message; without `conversation_id`, in a new conversation. */
  startRun({ key = newId(), signal, ...body }: NewRun): Promise<wire.AcceptedRun> {
    return this.#json("/v1/runs", { method: "POST", body, headers: this.#asked(key), signal });
  }

  /** Posts a message to a conversation. `replace_from` names the message that it replaces. */
  postMessage(conversationId: string, { key = newId(), signal, ...body }: NewMessage): Promise<wire.AcceptedMessage> {
    const headers = this.#asked(key);
    return this.#json(path`/v1/conversations/${conversationId}/messages`, { method: "POST", body, headers, signal });
  }

  /** Posts a message that joins the live run before its next model call. */
  steer(conversationId: string, content: string): Promise<wire.AcceptedMessage> {
    return this.postMessage(conversationId, { content, mode: "steer" });
  }

  /**
   * Yields the events of a run after a cursor, each once and in order, up to the terminal event. Another connection replaces a
   * lost one. The iterator ends only after the end of the run; it throws `ConnectionLost` after `patience` without a server. An
   * event of a later server may have a type that `RunEvent` lacks.
   */
  events(runId: string, { after = "0-0", signal }: { after?: string; signal?: AbortSignal } = {}): AsyncGenerator<wire.RunEvent, void, void> {
    // An agent may prefer a stream of complete messages, whose order a client cannot check.
    const url = urlOf(this.options, `${path`/v1/runs/${runId}/events`}?stream_mode=events`);
    const open = (cursor: string, connection: AbortSignal) => {
      const headers = { accept: "text/event-stream", "last-event-id": cursor, ...this.options.headers?.() };
      return reached((this.options.fetch ?? fetch)(url, { headers, signal: connection }));
    };
    return followRun({ open, after, patience: this.#patience, signal });
  }

  /** Returns the message so far. `events` continues it after `last_event_id`. */
  snapshot(runId: string): Promise<{ snapshot: wire.Snapshot; last_event_id: wire.EventId }> {
    return this.#json(path`/v1/runs/${runId}/events`, { headers: { accept: "application/json" }, query: { snapshot: "true" } });
  }

  run(runId: string): Promise<wire.Run> {
    return this.#json(path`/v1/runs/${runId}`);
  }

  /** Returns the run after its end, however long that takes. */
  async wait(runId: string, { signal }: { signal?: AbortSignal } = {}): Promise<wire.Run> {
    for (;;) {
      const run = await this.#json<wire.Run>(path`/v1/runs/${runId}/wait`, { query: { timeout_ms: "30000" }, signal });
      if (["completed", "failed", "cancelled"].includes(run.status)) return run;
    }
  }

  cancel(runId: string): Promise<wire.Run> {
    return this.#json(path`/v1/runs/${runId}/cancel`, { method: "POST" });
  }

  approvals(runId: string): Promise<wire.Approvals> {
    return this.#json(path`/v1/runs/${runId}/approvals`);
  }

  /** Answers a question. The first answer counts: a later one rejects with a `Problem` whose code is `already_decided`. */
  decide(runId: string, approvalId: string, body: wire.DecisionBody): Promise<wire.Run> {
    return this.#json(path`/v1/runs/${runId}/approvals/${approvalId}`, { method: "POST", body });
  }

  /** Returns the result of a tool of this client: its output, or why there is none. */
  returnResult(runId: string, callId: string, body: { output: unknown } | { error: string }): Promise<wire.Run> {
    return this.#json(path`/v1/runs/${runId}/tool_results/${callId}`, { method: "POST", body });
  }

  /** The route has no idempotency key, so a repetition could make a second conversation. */
  createConversation(body: wire.NewConversation = {}): Promise<wire.Conversation> {
    return this.#json("/v1/conversations", { method: "POST", body, isRepeatable: false });
  }

  conversation(conversationId: string): Promise<wire.Conversation> {
    return this.#json(path`/v1/conversations/${conversationId}`);
  }

  /** Yields the conversations, newest activity first; with `q`, those that have these words. */
  conversations({ q }: { q?: string } = {}): AsyncGenerator<wire.Conversation, void, void> {
    return this.#items("/v1/conversations", { q });
  }

  /** Yields the messages of a conversation, oldest first. */
  messages(conversationId: string): AsyncGenerator<wire.Message, void, void> {
    return this.#items(path`/v1/conversations/${conversationId}/messages`);
  }

  async deleteConversation(conversationId: string): Promise<void> {
    await this.#json(path`/v1/conversations/${conversationId}`, { method: "DELETE" });
  }

  /** Uploads a file in pieces. After a lost connection, the upload continues where the server has it. */
  upload(file: Blob, name: string, uploading: Uploading = {}): Promise<wire.StoredFile> {
    return uploadFile(this.options, file, name, { patience: this.#patience, ...uploading });
  }

  /** Yields the caller's files, newest first. */
  files(): AsyncGenerator<wire.StoredFile, void, void> {
    return this.#items("/v1/files");
  }

  async download(fileId: string, { signal }: { signal?: AbortSignal } = {}): Promise<Blob> {
    const url = urlOf(this.options, path`/v1/files/${fileId}`);
    const download = () => exchange(url, { headers: this.options.headers?.() }, this.#exchange(signal), bytesOf);
    return this.#repeated(download, { signal });
  }

  async deleteFile(fileId: string): Promise<void> {
    await this.#json(path`/v1/files/${fileId}`, { method: "DELETE" });
  }

  async *#items<T>(path: string, query: Record<string, string | undefined> = {}): AsyncGenerator<T, void, void> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.#json<{ items: T[]; next?: string | null }>(path, { query: { ...query, cursor } });
      yield* page.items;
      if (typeof page.next !== "string") return;
      cursor = page.next;
    }
  }

  /** Returns the headers of a message. */
  #asked(key: string): Record<string, string> {
    return { ...zoneOf(this.options), "idempotency-key": key };
  }

  /** Makes a call until the server has answered it completely. */
  async #json<T = unknown>(path: string, call: Call = {}): Promise<T> {
    const { method = "GET", body, query = {}, signal } = call;
    const fields = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
    const url = urlOf(this.options, `${path}${fields.length > 0 ? `?${new URLSearchParams(fields)}` : ""}`);
    const ask = async () => {
      const headers: Record<string, string> = { ...call.headers, ...this.options.headers?.() };
      if (body !== undefined) headers["content-type"] = "application/json";
      const answer = await follow(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }, this.#exchange(signal));
      return (answer.kind === "nothing" ? undefined : jsonOf(answer)) as T;
    };
    return this.#repeated(ask, call);
  }

  #exchange(signal: AbortSignal | undefined): Exchange {
    return { timeout: Math.min(CALL_TIMEOUT_MS, this.#patience), signal, fetch: this.options.fetch };
  }

  /** Repeats a request that may be repeated, while the server is away. */
  async #repeated<T>(ask: () => Promise<T>, { isRepeatable = true, signal }: Pick<Call, "isRepeatable" | "signal">): Promise<T> {
    const pauses = new Pauses(this.#patience, Math.min(CALL_TIMEOUT_MS, this.#patience));
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        // A fault of the server stays one.
        if (!isRepeatable || !(error instanceof Problem) || !error.mayPass || error.status === 500) throw error;
        await pauses.next(error, signal);
      }
    }
  }
}
