// The token of who is signed in, where the server asks for one. It is in a cookie, so that all tabs have it and signing out
// in one is signing out in all; the server reads the header, never this cookie.

const NAME = "holdfast_token";
const YEAR_SECONDS = 31_536_000;

export function token(cookies = document.cookie): string | undefined {
  for (const cookie of cookies.split("; ")) {
    const [name, value] = cookie.split(/=(.*)/s);
    if (name === NAME && value) return decoded(value);
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

/** Whether the browser has kept it: it drops cookies above 4 KB, and all of them if that is its reader's wish. What a copy from a
 * terminal or a header may bring along is taken away. */
export function keepToken(given: string): boolean {
  const bare = given.trim().replace(/^Bearer\s+/i, "");
  document.cookie = cookieOf(bare, YEAR_SECONDS, location.protocol === "https:");
  return token() === bare;
}

export function forgetToken(): void {
  document.cookie = cookieOf("", 0, location.protocol === "https:");
}

export function cookieOf(token: string, seconds: number, isSecure: boolean): string {
  const attributes = `Path=/; Max-Age=${seconds}; SameSite=Strict${isSecure ? "; Secure" : ""}`;
  return `${NAME}=${encodeURIComponent(token)}; ${attributes}`;
}

/** The header that says who is asking; none without a token. */
export function authorization(): Record<string, string> {
  const known = typeof document === "undefined" ? undefined : token();
  return known ? { authorization: `Bearer ${known}` } : {};
}
