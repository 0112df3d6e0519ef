// The token identifies the signed-in reader, where the server requires one. It is in a cookie, so that all tabs share
// it and one tab signs out all. The server reads the header, never this cookie.

const NAME = "holdfast_token";
/** Browsers take a cookie of this name only from this very host and over TLS, so no neighbouring host can plant one. */
const HOST_NAME = `__Host-${NAME}`;
const YEAR_SECONDS = 31_536_000;

export function token(cookies = document.cookie, isSecure = globalThis.location?.protocol === "https:"): string | undefined {
  for (const cookie of cookies.split("; ")) {
    const [name, value] = cookie.split(/=(.*)/s);
    if (name === nameOf(isSecure) && value) return decoded(value);
  }
  return undefined;
}

/** A value that this page did not encode is no token. */
function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

/** Removes white space and `Bearer`, which a reader may copy along from a terminal or a header. */
export function bareOf(given: string): string {
  return given.trim().replace(/^Bearer\s+/i, "");
}

/** Whether the browser has kept the token. It drops cookies above 4 KB, and all cookies if its user has set that. */
export function keepToken(given: string): boolean {
  const bare = bareOf(given);
  document.cookie = cookieOf(bare, lifeOf(bare), location.protocol === "https:");
  return token() === bare;
}

/**
 * Returns the seconds for which the page keeps a token: until it expires, if it says when. The server refuses an
 * expired one.
 */
export function lifeOf(token: string, now = Date.now()): number {
  try {
    const claims: unknown = JSON.parse(atob(token.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/")));
    const expires = typeof claims === "object" && claims !== null && "exp" in claims ? Number(claims.exp) : Number.NaN;
    return Number.isFinite(expires) ? Math.min(YEAR_SECONDS, Math.max(60, Math.ceil(expires - now / 1000))) : YEAR_SECONDS;
  } catch {
    return YEAR_SECONDS;
  }
}

export function forgetToken(): void {
  // An older page may have kept a token under the plain name.
  document.cookie = `${NAME}=; Path=/; Max-Age=0`;
  document.cookie = cookieOf("", 0, location.protocol === "https:");
}

export function cookieOf(token: string, seconds: number, isSecure: boolean): string {
  const attributes = `Path=/; Max-Age=${seconds}; SameSite=Strict${isSecure ? "; Secure" : ""}`;
  return `${nameOf(isSecure)}=${encodeURIComponent(token)}; ${attributes}`;
}

function nameOf(isSecure: boolean): string {
  return isSecure ? HOST_NAME : NAME;
}

/** Returns the header that identifies the caller; it is empty without a token. */
export function authorization(): Record<string, string> {
  const known = typeof document === "undefined" ? undefined : token();
  return known ? { authorization: `Bearer ${known}` } : {};
}
