import { describe, expect, it } from "vitest";

import { cookieOf, lifeOf, token } from "./token";

describe("the token", () => {
  it("comes back from the cookie as it was kept", () => {
    const kept = cookieOf("a.b=c;d e", 60, false).split("; ")[0]!;
    expect(token(`other=1; ${kept}; holdfast_tokens=2`)).toBe("a.b=c;d e");
  });

  it("is not there without its cookie, or with an empty one", () => {
    expect(token("")).toBeUndefined();
    expect(token("xholdfast_token=1")).toBeUndefined();
    expect(token("holdfast_token=")).toBeUndefined();
    expect(token("holdfast_token=%E0%A4%A")).toBeUndefined();
  });

  it("is kept until it expires, if it says when", () => {
    const expiring = (exp: unknown) => `e30.${btoa(JSON.stringify({ exp }))}.x`;
    expect(lifeOf(expiring(1_700_000_600), 1_700_000_000_000)).toBe(600);
    expect(lifeOf(expiring(1_600_000_000), 1_700_000_000_000)).toBe(60);
    expect(lifeOf(expiring(9_999_999_999), 1_700_000_000_000)).toBe(31_536_000);
    expect(lifeOf(expiring("soon"))).toBe(31_536_000);
    expect(lifeOf("opaque")).toBe(31_536_000);
  });

  it("leaves the page for no other site, and not in the clear where there is TLS", () => {
    expect(cookieOf("t", 60, true)).toBe("holdfast_token=t; Path=/; Max-Age=60; SameSite=Strict; Secure");
    expect(cookieOf("t", 60, false)).toBe("holdfast_token=t; Path=/; Max-Age=60; SameSite=Strict");
  });
});
