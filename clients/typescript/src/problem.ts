/** Failures of calls and streams. */

/** The server refused a request with problem+json (RFC 9457). */
export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    readonly status: number,
    /** Stable and lower case, such as `conversation_busy`. */
    readonly code: string,
    detail: string,
    readonly body: Record<string, unknown> = {},
    /** Seconds until the client may try again. */
    readonly retryAfter?: number,
  ) {
    super(detail);
  }

  /** Whether a later request might succeed. */
  get mayPass(): boolean {
    return this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

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

/** A connection ended too early, and the next one continues after the cursor. It never leaves this package. */
export class StreamCut extends Error {
  override readonly name = "StreamCut";
}

/** Returns the problem of a response, also of one that a proxy wrote. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => "");
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) body = parsed as Record<string, unknown>;
  } catch {
    // The refusal is none of the server's own.
  }
  const code = typeof body.code === "string" ? body.code : `http_${response.status}`;
  const detail = typeof body.detail === "string" ? body.detail : text.slice(0, 200);
  const wait = response.headers.get("retry-after") ?? "";
  return new Problem(response.status, code, detail, body, /^\d+$/.test(wait) ? Number(wait) : undefined);
}
