import { expect, test } from "vitest";

import { object, safeParse, string } from "./noSchemas";

type Chain = Record<string, () => Chain> & (() => Chain);
const anything = object as unknown as Chain;

test("every description returns the stub itself", () => {
  expect(anything().optional!().describe!()).toBe(string);
});

test("the stub is no promise, which would never resolve", async () => {
  expect(await anything).toBe(anything);
});

test("the stub is not iterable", () => {
  expect(() => [...(anything as unknown as string[])]).toThrow("iterable");
});

test("the stub refuses to validate", () => {
  expect(() => (safeParse as unknown as Chain)()).toThrow("no schemas");
  expect(() => anything().parse!()).toThrow("no schemas");
});
