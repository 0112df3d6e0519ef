import { expect, test } from "vitest";

import { isOfSend } from "./clicks";

test("a click on Stop soon after the one on Send belongs to that one", () => {
  const at = (timeStamp: number, detail = 1) => isOfSend({ timeStamp, detail }, 1_000);
  expect([at(1_100), at(1_499), at(1_500), at(9_000)]).toEqual([true, true, false, false]);
  // The system of a slow hand counts clicks for longer.
  expect([at(1_700, 2), at(1_900, 3)]).toEqual([true, false]);
  expect(isOfSend({ timeStamp: 0, detail: 1 }, -Infinity)).toBe(false);
});

test("a key stops at any time", () => {
  expect(isOfSend({ timeStamp: 1_001, detail: 0 }, 1_000)).toBe(false);
});
