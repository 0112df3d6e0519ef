import { expect, it } from "vitest";

import { delayAfter, pause } from "./backoff.js";

it("the delay doubles from half a second to one and a half, and is never less than half of that", () => {
  expect([1, 2, 3, 4, 100].map((failures) => delayAfter(failures, 0, 1))).toEqual([500, 1000, 1500, 1500, 1500]);
  expect([1, 5].map((failures) => delayAfter(failures, 0, 0))).toEqual([250, 750]);
});

it("a client that has waited for four minutes asks twice a minute", () => {
  expect([0, 1].map((random) => delayAfter(200, 239_999, random))).toEqual([750, 1500]);
  expect([0, 1].map((random) => delayAfter(200, 240_000, random))).toEqual([15_000, 30_000]);
});

it("an abort ends a pause", async () => {
  const gone = new AbortController();
  const pausing = pause(60_000, gone.signal);
  gone.abort(new Error("gone"));
  await expect(pausing).rejects.toThrow("gone");
  await expect(pause(60_000, gone.signal)).rejects.toThrow("gone");
});
