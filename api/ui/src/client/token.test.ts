import { describe, expect, it } from "vitest";

import { cookieOf, lifeOf, token } from "./token";

describe("the token", () => {
  it("survives the cookie unchanged", () => {
    const kept = cookieOf("a.b=c;d e", 60, false).split("; ")[0]!;
    expect(token(`other=1; ${kept}; holdfast_tokens=2`, false)).toBe("a.b=c;d e");
  });

  it("is undefined without its cookie, or with an empty one", () => {
    expect(token("", false)).toBeUndefined();
    expect(token("xholdfast_token=1", false)).toBeUndefined();
    expect(token("holdfast_token=", false)).toBeUndefined();
    expect(token("holdfast_token=%E0%A4%A", false)).toBeUndefined();
  });

  it("counts over TLS only under the name that no neighbouring host can use", () => {
    expect(token("holdfast_token=planted; __Host-holdfast_token=own", true)).toBe("own");
    expect(token("holdfast_token=planted", true)).toBeUndefined();
    expect(token("__Host-holdfast_token=own", false)).toBeUndefined();
  });

  it("lives until it expires, if it says when", () => {
    const expiring = (exp: unknown) => `e30.${btoa(JSON.stringify({ exp }))}.x`;
    expect(lifeOf(expiring(1_700_000_600), 1_700_000_000_000)).toBe(600);
    expect(lifeOf(expiring(1_600_000_000), 1_700_000_000_000)).toBe(60);
    expect(lifeOf(expiring(9_999_999_999), 1_700_000_000_000)).toBe(31_536_000);
    expect(lifeOf(expiring("soon"))).toBe(31_536_000);
    expect(lifeOf("opaque")).toBe(31_536_000);
  });

  it("leaves the page for no other site, and not in the clear where the page has TLS", () => {
    expect(cookieOf("t", 60, true)).toBe("__Host-holdfast_token=t; Path=/; Max-Age=60; SameSite=Strict; Secure");
    expect(cookieOf("t", 60, false)).toBe("holdfast_token=t; Path=/; Max-Age=60; SameSite=Strict");
  });
});
