import { expect, it } from "vitest";

import { delayAfter, pause } from "./backoff";

it("the delay doubles from half a second to eight, and is never less than half of that", () => {
  expect([1, 2, 3, 4, 5, 6, 100].map((failures) => delayAfter(failures, 1))).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000]);
  expect([1, 5].map((failures) => delayAfter(failures, 0))).toEqual([250, 4000]);
});

it("a pause ends for somebody who has gone", async () => {
  const gone = new AbortController();
  const pausing = pause(60_000, gone.signal);
  gone.abort(new Error("gone"));
  await expect(pausing).rejects.toThrow("gone");
  await expect(pause(60_000, gone.signal)).rejects.toThrow("gone");
});
