// A problem says in one form what went wrong between the page and the server.

/** It holds the server's refusal (RFC 9457), or a substitute if the server sent none. */
export class Problem extends Error {
  constructor(
    /** The HTTP status; 0 if no response arrived. */
    readonly status: number,
    /** The code is stable and lower case, such as `conversation_busy`. */
    readonly code: string,
    detail: string,
    /** Seconds until the client may try again. */
    readonly retryAfter?: number,
    /** The failed run. The server has its question. */
    readonly run?: string,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** The connection was silent for too long. */
export const SILENT = "silent";
/** The page failed to open the connection, or lost it. */
export const UNREACHABLE = "unreachable";
/** The stream ended before its last chunk. */
export const CUT_OFF = "cut_off";
/** The replay differs from the chunks that the page has. */
export const SUPERSEDED = "superseded";
/** The run has failed, and the server gave no reason. */
export const RUN_FAILED = "run_failed";

/** Returns the problem of an unsuccessful response; it reads the response's body. */
export async function problemOf(response: Response): Promise<Problem> {
  const retryAfter = secondsUntil(response.headers.get("retry-after"));
  const body = await bodyOf(response);
  const code = textIn(body, "code") ?? `http_${response.status}`;
  const detail = textIn(body, "detail") ?? textIn(body, "title") ?? response.statusText;
  return new Problem(response.status, code, detail, retryAfter, textIn(body, "run"));
}

/** Converts any thrown value to a problem. An error of `fetch` says nothing that helps a reader. */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, UNREACHABLE, error instanceof Error ? error.message : String(error));
}

/** Whether a later request might succeed. */
export function mayPass({ status }: Problem): boolean {
  return status === 0 || status === 408 || status === 429 || status >= 500;
}

/** Whether the server, or a service that it needs, is unreachable for now. */
export function isAway({ status }: Problem): boolean {
  return status === 0 || (status >= 502 && status <= 504);
}

/** Whether the server would take a shorter text. */
export function isTooLong({ code }: Problem): boolean {
  return code === "content_too_long" || code === "body_too_large";
}

/** Returns the most bytes that the server takes; its sentence names the number last. */
export function limitOf({ message }: Problem): number | undefined {
  const most = /at most (\d+)/.exec(message)?.[1];
  return most === undefined ? undefined : Number(most);
}

/** Returns the seconds of a `Retry-After` header, which holds a number of seconds or a date. */
export function secondsUntil(header: string | null, now = Date.now()): number | undefined {
  if (!header) return undefined;
  const seconds = /^\s*\d+\s*$/.test(header) ? Number(header) : (Date.parse(header) - now) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}

async function bodyOf(response: Response): Promise<unknown> {
  if (!/\bjson\b/.test(response.headers.get("content-type") ?? "")) return undefined;
  try {
    return await response.json();
  } catch {
    return undefined;
  }
}

function textIn(body: unknown, field: string): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const value = (body as Record<string, unknown>)[field];
  return typeof value === "string" && value !== "" ? value : undefined;
}
