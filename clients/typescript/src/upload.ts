/** The pieces of one file, and the offset from which its upload continues. */

/** The server's own part of a file: pieces of this size lose nothing. */
const PIECE_BYTES = 1_048_576;

/** The client gives up after this many failures without a new byte. */
export const MOST_UPLOAD_FAILURES = 5;

export class Upload {
  failures = 0;
  #most = 0;
  #key = crypto.randomUUID() as string;
  id: string | undefined;
  received = 0;

  constructor(
    readonly file: Blob,
    readonly name: string,
  ) {}

  /** The server no longer has the upload, and another one begins. */
  restart(): void {
    this.#key = crypto.randomUUID();
    this.id = undefined;
    this.received = 0;
  }

  stored(id: string, received: number): void {
    this.id = id;
    this.received = received;
    if (received <= this.#most) return;
    this.#most = received;
    this.failures = 0;
  }

  /** Returns the request with the next piece. */
  piece(): { method: string; path: string; headers: Record<string, string>; body: Blob } {
    const end = Math.min(this.received + PIECE_BYTES, this.file.size);
    const headers: Record<string, string> = { "content-type": "application/octet-stream" };
    // An empty file has no range, and the server refuses it.
    if (this.file.size > 0) headers["content-range"] = `bytes ${this.received}-${end - 1}/${this.file.size}`;
    const body = this.file.slice(this.received, end);
    if (this.id !== undefined) return { method: "PATCH", path: `/v1/files/${this.id}`, headers, body };
    const escaped = encodeURIComponent(this.name).replace(/['()*!]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);
    headers["content-disposition"] = `attachment; filename*=UTF-8''${escaped}`;
    headers["idempotency-key"] = this.#key;
    return { method: "POST", path: "/v1/files", headers, body };
  }
}
