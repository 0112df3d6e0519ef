// The address of a server, and of the things that it has.

export interface Server {
  /** The address of the server; by default the page's own. A program outside of a page needs it. */
  baseUrl?: string;
  /** Returns the headers of every request, such as the caller's authorization. */
  headers?(): Record<string, string>;
  fetch?: typeof fetch;
}

/** Returns the URL of a path of the server. Without a page, a server has an address; otherwise this throws. */
export function urlOf({ baseUrl = "" }: Server, path: string): string {
  const url = `${baseUrl.replace(/\/+$/, "")}${path}`;
  // `fetch` would throw as it does without a network.
  if (!URL.canParse(url, globalThis.location?.href)) throw new TypeError(`${url} is no address. Outside of a page, a client needs a baseUrl.`);
  return url;
}

/** Returns a path with its parts escaped. */
export function path(parts: TemplateStringsArray, ...ids: string[]): string {
  return String.raw({ raw: parts }, ...ids.map(encodeURIComponent));
}
