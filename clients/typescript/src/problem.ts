// A problem says in one form what went wrong between a client and the server.

/** It holds the server's refusal (RFC 9457), or a substitute if the server sent none. */
export class Problem extends Error {
  override readonly name: string = "Problem";

  constructor(
    /** The HTTP status; 0 if no response arrived. */
    readonly status: number,
    /** The code is stable and lower case, such as `conversation_busy`. */
    readonly code: string,
    detail: string,
    /** Seconds until the client may try again. */
    readonly retryAfter?: number,
    /** The response's JSON object; empty if it has none. */
    readonly body: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
  }

  /** A sentence for the reader, as in the response. */
  get detail(): string {
    return this.message;
  }

  /** The failed run. The server has its question. */
  get run(): string | undefined {
    return textIn(this.body, "run");
  }

  /** Whether a later request might succeed. */
  get mayPass(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }

  /** Whether the server, or a service that it needs, is unreachable for now. */
  get isAway(): boolean {
    return this.status === 0 || (this.status >= 502 && this.status <= 504);
  }
}

/** The connection was silent for too long. */
export const SILENT = "silent";
/** The client failed to open the connection, or lost it. */
export const UNREACHABLE = "unreachable";
/** The stream ended before its end. */
export const CUT_OFF = "cut_off";

/** No connection was possible for as long as the client waits. `cursor` is the last event that a stream gave. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";

  constructor(
    seconds: number,
    readonly cursor?: string,
    options?: ErrorOptions,
  ) {
    super(`The server could not be reached for ${Math.round(seconds)} s.`, options);
  }
}

/** Several connections in a row sent events that do not follow the cursor. */
export class BrokenLog extends Error {
  override readonly name = "BrokenLog";
}

/** Returns the problem of an unsuccessful response, also of one that a proxy wrote; it reads the response's body. */
export async function problemOf(response: Response): Promise<Problem> {
  const body = await bodyOf(response);
  const code = textIn(body, "code") ?? `http_${response.status}`;
  const detail = textIn(body, "detail") ?? textIn(body, "title") ?? response.statusText;
  return new Problem(response.status, code, detail, secondsUntil(response.headers.get("retry-after")), body);
}

/** Converts any thrown value to a problem. An error of `fetch` says nothing that helps a reader. */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, UNREACHABLE, error instanceof Error ? error.message : String(error));
}

/** Any error of the network becomes one problem, whatever a browser calls it; an error of a callback does not. */
export async function reached<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    throw problemFrom(error);
  }
}

/** Returns the seconds of a `Retry-After` header, which holds a number of seconds or a date. */
export function secondsUntil(header: string | null, now = Date.now()): number | undefined {
  if (!header) return undefined;
  const seconds = /^\s*\d+\s*$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

async function bodyOf(response: Response): Promise<Record<string, unknown>> {
  if (!/\bjson\b/.test(response.headers.get("content-type") ?? "")) return {};
  const body: unknown = await response.json().catch(() => undefined);
  return typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
}

function textIn(body: Readonly<Record<string, unknown>>, field: string): string | undefined {
  const value = body[field];
  return typeof value === "string" && value !== "" ? value : undefined;
}
