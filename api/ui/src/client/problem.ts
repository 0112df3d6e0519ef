// What went wrong between the page and the server, in one form for whoever shows it.

/** What the server says when it refuses (RFC 9457), or what stands for it when it said nothing. */
export class Problem extends Error {
  constructor(
    /** The HTTP status; 0 without an answer. */
    readonly status: number,
    /** Stable and lower case, such as `conversation_busy`. */
    readonly code: string,
    detail: string,
    /** Seconds until one may try again. */
    readonly retryAfter?: number,
    /** The run that has failed. The server has its question. */
    readonly run?: string,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

/** Nothing came for too long. */
export const SILENT = "silent";
/** The connection could not be made, or broke. */
export const UNREACHABLE = "unreachable";
/** The stream ended where its end was not to be. */
export const CUT_OFF = "cut_off";
/** What a replay brings is not what was there before. */
export const SUPERSEDED = "superseded";
/** The run has failed, and nobody could say why. */
export const RUN_FAILED = "run_failed";

/** What an answer that is no success says; it reads the answer's body. */
export async function problemOf(response: Response): Promise<Problem> {
  const retryAfter = secondsUntil(response.headers.get("retry-after"));
  const said = await bodyOf(response);
  const code = textIn(said, "code") ?? `http_${response.status}`;
  const detail = textIn(said, "detail") ?? textIn(said, "title") ?? response.statusText;
  return new Problem(response.status, code, detail, retryAfter, textIn(said, "run"));
}

/** Anything that was thrown, as a problem. What `fetch` throws says nothing that a reader could use. */
export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, UNREACHABLE, error instanceof Error ? error.message : String(error));
}

/** Whether the same might succeed in a while. */
export function mayPass({ status }: Problem): boolean {
  return status === 0 || status === 408 || status === 429 || status >= 500;
}

/** Whether the server, or what it needs, cannot be reached for now. */
export function isAway({ status }: Problem): boolean {
  return status === 0 || (status >= 502 && status <= 504);
}

/** Whether the server would take a shorter text. */
export function isTooLong({ code }: Problem): boolean {
  return code === "content_too_long" || code === "body_too_large";
}

/** The most bytes that the server takes; its sentence names the number last. */
export function limitOf({ message }: Problem): number | undefined {
  const most = /at most (\d+)/.exec(message)?.[1];
  return most === undefined ? undefined : Number(most);
}

/** `Retry-After` is a number of seconds, or a date. */
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
