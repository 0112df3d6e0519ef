// This file makes one call to the server and returns its JSON.
import { zoneOf } from "holdfast-client/address";
import { follow } from "holdfast-client/processor";

import { authorization } from "./token";

export interface Calling {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** The call sends it as JSON. */
  body?: unknown;
  /** The call omits the reader's token. */
  asAnonymous?: boolean;
  /** The call uses this token instead of the reader's. */
  as?: string;
  /** The idempotency key: a repeated call with it has no second effect. */
  key?: string;
  signal?: AbortSignal;
  /** Receives the head of a successful response. */
  onOpen?(response: Response): void;
}

/** Browsers let requests of 64 KiB in all outlive their page. */
const KEPT_LENGTH = 2_000;

/** The time-out leaves a busy server enough time, and is short enough for a waiting reader. */
const CALL_TIMEOUT_MS = 30_000;

/** Returns the JSON of the response. Rejects with a `Problem`. */
export async function call<T>(path: string, { method = "GET", body, asAnonymous, as, key, signal, onOpen }: Calling = {}): Promise<T> {
  const headers: Record<string, string> = as ? { authorization: `Bearer ${as}` } : asAnonymous ? {} : authorization();
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key !== undefined) Object.assign(headers, zoneOf({}), { "idempotency-key": key });
  const json = body === undefined ? undefined : JSON.stringify(body);
  // A reader who changes something and leaves at once has changed it.
  const keepalive = method !== "GET" && (json?.length ?? 0) < KEPT_LENGTH;
  const init: RequestInit = { method, headers, keepalive, body: json };
  const answer = await follow(path, init, { timeout: CALL_TIMEOUT_MS, signal, onOpen });
  // The routes return what `docs/api.md` says, and a page trusts its own server.
  return (answer.kind === "json" ? answer.value : undefined) as T;
}

/** Returns `?a=b`, without the undefined and empty fields. */
export function query(fields: Record<string, string | number | undefined>): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) => (value === undefined || value === "" ? [] : [[name, String(value)]]));
  return pairs.length > 0 ? `?${new URLSearchParams(pairs)}` : "";
}
