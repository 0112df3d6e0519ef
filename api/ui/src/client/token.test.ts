import { describe, expect, it } from "vitest";

import { cookieOf, token } from "./token";

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

  it("leaves the page for no other site, and not in the clear where there is TLS", () => {
    expect(cookieOf("t", 60, true)).toBe("holdfast_token=t; Path=/; Max-Age=60; SameSite=Strict; Secure");
    expect(cookieOf("t", 60, false)).toBe("holdfast_token=t; Path=/; Max-Age=60; SameSite=Strict");
  });
});
