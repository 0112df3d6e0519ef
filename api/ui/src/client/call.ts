// One call to the server, and its JSON.
import { follow } from "./processor";
import { authorization } from "./token";

export interface Calling {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  /** Lets the request outlive the page. */
  keepalive?: boolean;
  /** Without the reader's token. */
  asNobody?: boolean;
  /** With this token instead of the reader's. */
  as?: string;
  signal?: AbortSignal;
}

/** Long enough for a server that is busy, short enough for somebody who waits. */
const CALL_TIMEOUT_MS = 30_000;

/** Rejects with a `Problem`. */
export async function call<T>(path: string, { method = "GET", body, keepalive, asNobody, as, signal }: Calling = {}): Promise<T> {
  const headers: Record<string, string> = as ? { authorization: `Bearer ${as}` } : asNobody ? {} : authorization();
  if (body !== undefined) headers["content-type"] = "application/json";
  const init: RequestInit = { method, headers, keepalive, body: body === undefined ? undefined : JSON.stringify(body) };
  const answer = await follow(path, init, { timeout: CALL_TIMEOUT_MS, signal });
  // The routes answer what `docs/api.md` says; a page believes its own server.
  return (answer.kind === "json" ? answer.value : undefined) as T;
}

/** A path with its parts made safe. */
export function path(parts: TemplateStringsArray, ...ids: string[]): string {
  return String.raw({ raw: parts }, ...ids.map(encodeURIComponent));
}

/** `?a=b`, without what is not said. */
export function query(fields: Record<string, string | number | undefined>): string {
  const said = Object.entries(fields).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, String(value)]]));
  return said.length > 0 ? `?${new URLSearchParams(said)}` : "";
}
