import { expect, test } from "vitest";

import { object, safeParse, string } from "./noSchemas";

type Chain = Record<string, () => Chain> & (() => Chain);
const anything = object as unknown as Chain;

test("whatever is described is nothing again", () => {
  expect(anything().optional!().describe!()).toBe(string);
});

test("it is no promise, which would never be kept", async () => {
  expect(await anything).toBe(anything);
});

test("it cannot be gone through", () => {
  expect(() => [...(anything as unknown as string[])]).toThrow("iterable");
});

test("what is to be judged by it is refused", () => {
  expect(() => (safeParse as unknown as Chain)()).toThrow("no schemas");
  expect(() => anything().parse!()).toThrow("no schemas");
});
