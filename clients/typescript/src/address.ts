// The address of a server, and of the things that it has.

export interface Server {
  /** The address of the server; by default the page's own. A program outside of a page needs it. */
  baseUrl?: string;
  /** Returns the headers of every request, such as the caller's authorization. */
  headers?(): Record<string, string>;
  /** The reader's time zone, an IANA name; by default that of the machine. An empty text sends none. */
  timeZone?: string;
  fetch?: typeof fetch;
}

/** Returns the URL of a path of the server. Without a page, a server has an address; otherwise this throws. */
export function urlOf({ baseUrl = "" }: Server, path: string): string {
  const url = `${baseUrl.replace(/\/+$/, "")}${path}`;
  // `fetch` would throw as it does without a network.
  if (!URL.canParse(url, globalThis.location?.href)) throw new TypeError(`${url} is no address. Outside of a page, a client needs a baseUrl.`);
  return url;
}

/** Returns the header by which a model knows the date where the reader is. */
export function zoneOf({ timeZone = ownZone() }: Server): Record<string, string> {
  return timeZone ? { "time-zone": timeZone } : {};
}

/** Returns the machine's zone. UTC is none: machines that hide their zone, and most servers, say that they have it. */
function ownZone(): string {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  return /^(UTC$|Etc\/)/.test(zone) ? "" : zone;
}

/** Returns a path with its parts escaped. */
export function path(parts: TemplateStringsArray, ...ids: string[]): string {
  return String.raw({ raw: parts }, ...ids.map(encodeURIComponent));
}
