import { describe, expect, it } from "vitest";

import { Problem, problemOf, secondsUntil } from "./problem.js";

describe("a problem", () => {
  it("has the server's code, detail and Retry-After", async () => {
    const body = JSON.stringify({ status: 429, code: "rate_limited", title: "Too Many Requests", detail: "Wait a while." });
    const headers = { "content-type": "application/problem+json", "retry-after": "7" };
    const problem = await problemOf(new Response(body, { status: 429, headers }));
    expect(problem).toMatchObject({ status: 429, code: "rate_limited", message: "Wait a while.", retryAfter: 7 });
  });

  it("has a code and a message even if the server or its proxy sends none", async () => {
    const page = new Response("<h1>Bad Gateway</h1>", { status: 502, statusText: "Bad Gateway", headers: { "content-type": "text/html" } });
    expect(await problemOf(page)).toMatchObject({ status: 502, code: "http_502", message: "Bad Gateway", retryAfter: undefined });
    const broken = new Response("{", { status: 500, headers: { "content-type": "application/json" } });
    expect(await problemOf(broken)).toMatchObject({ status: 500, code: "http_500" });
  });

  it("passes only with status 0, 408, 429 or 5xx", () => {
    const passes = (status: number) => new Problem(status, "", "").mayPass;
    expect([0, 408, 429, 500, 502, 503].map(passes)).toEqual([true, true, true, true, true, true]);
    expect([200, 400, 401, 404, 409, 422].map(passes)).toEqual([false, false, false, false, false, false]);
  });

  it.each([
    [null, undefined],
    ["", undefined],
    ["soon", undefined],
    ["12", 12],
    ["Thu, 01 Jan 1970 00:00:11 GMT", 10],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("with Retry-After %j allows another try in %j s", (header, seconds) => {
    expect(secondsUntil(header, 1_000)).toBe(seconds);
  });
});
