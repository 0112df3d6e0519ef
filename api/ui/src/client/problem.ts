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
  ) {
    super(detail);
    this.name = "Problem";
  }
}
