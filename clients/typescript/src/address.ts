// The address of a server, and of the things that it has.

export interface Server {
  /** The address of the server; by default the page's own. */
  baseUrl?: string;
  /** Returns the headers of every request, such as the caller's authorization. */
  headers?(): Record<string, string>;
  fetch?: typeof fetch;
}

/** Returns the URL of a path of the server. */
export function urlOf({ baseUrl = "" }: Server, path: string): string {
  return `${baseUrl.replace(/\/+$/, "")}${path}`;
}

/** Returns a path with its parts escaped. */
export function path(parts: TemplateStringsArray, ...ids: string[]): string {
  return String.raw({ raw: parts }, ...ids.map(encodeURIComponent));
}
