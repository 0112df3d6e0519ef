// The token of who is signed in, where the server asks for one. It is in a cookie, so that all tabs have it and signing out
// in one is signing out in all; the server reads the header, never this cookie.

const NAME = "holdfast_token";
/** Browsers take a cookie of this name only from this very host and over TLS, so that no neighbouring host can plant one. */
const HOST_NAME = `__Host-${NAME}`;
const YEAR_SECONDS = 31_536_000;

export function token(cookies = document.cookie, isSecure = globalThis.location?.protocol === "https:"): string | undefined {
  for (const cookie of cookies.split("; ")) {
    const [name, value] = cookie.split(/=(.*)/s);
    if (name === nameOf(isSecure) && value) return decoded(value);
  }
  return undefined;
}

/** What is not as this page has kept it is no token. */
function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

/** Without what a copy from a terminal or a header may bring along. */
export function bareOf(given: string): string {
  return given.trim().replace(/^Bearer\s+/i, "");
}

/** Whether the browser has kept it: it drops cookies above 4 KB, and all of them if that is its reader's wish. */
export function keepToken(given: string): boolean {
  const bare = bareOf(given);
  document.cookie = cookieOf(bare, lifeOf(bare), location.protocol === "https:");
  return token() === bare;
}

/** For how many seconds a token is worth keeping: until it expires, if it says when. One that has expired is the server's to refuse. */
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
  // An older page may have kept one under the plain name.
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

/** The header that says who is asking; none without a token. */
export function authorization(): Record<string, string> {
  const known = typeof document === "undefined" ? undefined : token();
  return known ? { authorization: `Bearer ${known}` } : {};
}
