/** An agent of AG-UI that continues after a lost connection. */
import * as agUi from "@ag-ui/client";
import { EventType, HttpAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { Observable, type Subscriber } from "rxjs";

import { OpenParts } from "./open.js";

/** The longest pause between two tries, in ms, unless the server asks for a longer one. */
const LONGEST_PAUSE = 10_000;

/** A connection without a byte for this many ms is dead: the server sends a heartbeat every 15 s. */
const SILENCE = 45_000;

/** The version that the client declares; those before 1.0 declare none. */
const PROTOCOL_VERSION = (agUi as { PROTOCOL_VERSION?: string }).PROTOCOL_VERSION;

/** The version to declare for a client before 1.0 that knows reasoning. */
const EARLY_VERSION = PROTOCOL_VERSION === undefined && "REASONING_START" in EventType ? "0.0.45" : undefined;

/** A run of a thread. */
export interface ThreadRun {
  id: string;
  hasEnded: boolean;
}

/** A refusal that no repetition changes. */
class Refused extends Error {
  constructor(
    readonly status: number,
    readonly payload: unknown,
  ) {
    super(`HTTP ${status}: ${typeof payload === "string" ? payload : JSON.stringify(payload)}`);
  }
}

/** A refusal that may pass, after `seconds` at the earliest. */
class Away extends Error {
  constructor(readonly seconds: number) {
    super(`The server asks for ${seconds} s.`);
  }
}

/** One stream, over as many connections as it needs. */
interface Stream {
  silence: number;
  request: (cursor: string | undefined, signal: AbortSignal) => Promise<Response>;
  /** Called with each event before it is passed on; returns the events to pass on. */
  events: (event: BaseEvent) => BaseEvent[];
  /** Called with each response. */
  opened?: (response: Response) => void;
}

/**
 * `HttpAgent` with a cursor. `runAgent` repeats its request with the id of the last frame until the run has ended, and the server
 * answers with what is missing. `connectAgent` gets the messages of the thread and the rest of an answer that is under way.
 *
 * `url` is that of an agent, `<server>/ag-ui` or `<server>/ag-ui/agents/<name>`.
 */
export class ResumableHttpAgent extends HttpAgent {
  /** The ms of silence after which another connection replaces one; by default 45,000. */
  silence?: number;

  clone(): ResumableHttpAgent {
    const copy = super.clone() as ResumableHttpAgent;
    copy.silence = this.silence;
    return copy;
  }

  run(input: RunAgentInput): Observable<BaseEvent> {
    const open = new OpenParts();
    return this.follow({
      request: (cursor, signal) => {
        const init = this.requestInit(EARLY_VERSION ? ({ protocolVersion: EARLY_VERSION, ...input } as RunAgentInput) : input);
        return this.fetch(this.url, { ...init, headers: { ...zone(), ...init.headers, ...cursorOf(cursor) }, signal });
      },
      events: (event) => open.pass(event),
    });
  }

  /** Returns the thread's current run, or undefined if it has none. */
  async currentRun(): Promise<ThreadRun | undefined> {
    const thread = `${this.server()}/threads/${encodeURIComponent(this.threadId)}`;
    const found = await this.fetch(thread, { method: "HEAD", headers: this.headers });
    const id = found.headers.get("x-run-id");
    if (!found.ok) throw new Refused(found.status, "");
    if (!id) return undefined;
    const response = await this.native(`runs/${id}`, {});
    const { status } = (await response.json()) as { status: string };
    return { id, hasEnded: ["completed", "failed", "cancelled"].includes(status) };
  }

  /** Stops the thread's run, which `abortRun` does not. Returns false if none is under way. Its stream ends as the run does. */
  async cancelRun(): Promise<boolean> {
    const run = await this.currentRun();
    if (!run || run.hasEnded) return false;
    await this.native(`runs/${run.id}/cancel`, { method: "POST" });
    return true;
  }

  /** Returns the address of AG-UI's routes. */
  private server(): string {
    return this.url.replace(/\/agents\/[^/]*\/?$/, "").replace(/\/$/, "");
  }

  /** Sends a request to the native API, which lies beside AG-UI's routes. */
  private async native(path: string, init: RequestInit): Promise<Response> {
    const response = await this.fetch(`${this.server()}/../v1/${path}`, { ...init, headers: this.headers });
    if (!response.ok) await refuse(response);
    return response;
  }

  protected connect(input: RunAgentInput): Observable<BaseEvent> {
    const server = this.server();
    const thread = encodeURIComponent(input.threadId);
    const declared = PROTOCOL_VERSION ?? EARLY_VERSION;
    const version = declared === undefined ? "" : `protocolVersion=${declared}`;
    const open = new OpenParts();
    // The events before the messages, of which a new connection sends all again.
    let head: BaseEvent[] | undefined = [];
    let run: string | null = null;
    return this.follow({
      request: (cursor, signal) => {
        const path = head || !run ? `threads/${thread}?${version}` : `runs/${run}?threadId=${thread}&${version}`;
        const headers = { ...this.headers, Accept: "text/event-stream", ...(head ? {} : cursorOf(cursor)) };
        return this.fetch(`${server}/${path}`, { headers, signal });
      },
      opened: (response) => {
        if (head) {
          head = [];
          run = response.headers.get("x-run-id");
        }
      },
      events: (event) => {
        if (!head) return open.pass(event);
        head.push(event);
        if (event.type !== EventType.MESSAGES_SNAPSHOT && !isLast(event)) return [];
        const all = head;
        head = undefined;
        return all.flatMap((event) => open.pass(event));
      },
    });
  }

  private follow(given: Omit<Stream, "silence">): Observable<BaseEvent> {
    const stream = { ...given, silence: this.silence ?? SILENCE };
    const signal = this.abortController.signal;
    return new Observable<BaseEvent>((subscriber) => {
      const stopped = new AbortController();
      void followTo(subscriber, stream, AbortSignal.any([signal, stopped.signal]));
      return () => stopped.abort();
    });
  }
}

async function followTo(subscriber: Subscriber<BaseEvent>, stream: Stream, signal: AbortSignal): Promise<void> {
  let cursor: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    let wish = 0;
    const connection = new Connection(signal, stream.silence);
    try {
      const response = await stream.request(cursor, connection.signal);
      if (response.status === 204) return subscriber.complete();
      if (!response.ok) await refuse(response);
      if (!isStream(response)) throw new Refused(response.status, "The answer is no stream of events.");
      stream.opened?.(response);
      for await (const { id, data } of frames(response, connection)) {
        const event = JSON.parse(data) as BaseEvent;
        stream.events(event).forEach((event) => subscriber.next(event));
        cursor = id ?? cursor;
        failures = 0;
        if (isLast(event)) return subscriber.complete();
      }
      // A stream without its last event was cut by something between the server and this client.
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof Refused) return subscriber.error(error);
      if (error instanceof Away) wish = error.seconds * 1000;
    } finally {
      connection.end();
    }
    await pause(failures++, wish, signal);
  }
  // As `HttpAgent` ends a stream that its user has aborted.
  if (!subscriber.closed) subscriber.error(new DOMException("The run was aborted.", "AbortError"));
}

/** Ends with its stream, and after a silence. */
class Connection {
  readonly #abort = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly signal: AbortSignal;

  constructor(
    stream: AbortSignal,
    readonly silence: number,
  ) {
    this.signal = AbortSignal.any([stream, this.#abort.signal]);
    this.feed();
  }

  /** A byte has arrived. */
  feed(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), this.silence);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }
}

function isStream(response: Response): boolean {
  return response.body !== null && /^text\/event-stream\b/.test(response.headers.get("content-type") ?? "");
}

function isLast(event: BaseEvent): boolean {
  return event.type === EventType.RUN_FINISHED || event.type === EventType.RUN_ERROR;
}

/** Returns the header by which a model knows the date where the reader is. A machine in UTC may hide its reader's zone. */
function zone(): Record<string, string> {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  return /^(UTC$|Etc\/|$)/.test(name) ? {} : { "time-zone": name };
}

function cursorOf(cursor: string | undefined): Record<string, string> {
  return cursor === undefined ? {} : { "Last-Event-ID": cursor };
}

/** Throws `Refused`, unless a repetition may succeed. */
async function refuse(response: Response): Promise<never> {
  const text = await response.text();
  let payload: unknown = text;
  let code: unknown;
  try {
    payload = JSON.parse(text);
    code = (payload as { code?: unknown } | null)?.code;
  } catch {
    // The refusal is none of the server's own.
  }
  // A run that has failed before its first output fails again at each repetition.
  const mayPass = response.status >= 500 || response.status === 429;
  if (mayPass && code !== "run_failed") throw new Away(Number(response.headers.get("retry-after")) || 0);
  throw new Refused(response.status, payload);
}

async function* frames(response: Response, connection: Connection): AsyncGenerator<EventSourceMessage> {
  const waiting: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (frame) => waiting.push(frame) });
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || connection.signal.aborted) return;
      connection.feed();
      parser.feed(decoder.decode(value, { stream: true }));
      yield* waiting.splice(0);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Waits before the next try, longer after each failure, and at least `wish` ms. */
function pause(failures: number, wish: number, signal: AbortSignal): Promise<void> {
  const longest = Math.min(LONGEST_PAUSE, 200 * 2 ** failures);
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(wish, longest * (0.5 + Math.random() / 2)));
    signal.addEventListener("abort", end);
  });
}
