import { expect, test } from "vitest";

import { isFolded, structureIn } from "./structure";

test.each<[unknown, object | undefined]>([
  [{ a: 1 }, { a: 1 }],
  ['{"a": [1]}', { a: [1] }],
  [" [1]", [1]],
  ["[broken", undefined],
  ["words", undefined],
  ['"words"', undefined],
  [5, undefined],
  [null, undefined],
])("the structure of %j", (value, expected) => expect(structureIn(value)).toEqual(expected));

test("the page folds a value of more than sixteen lines", () => {
  expect(isFolded(Array.from({ length: 14 }, () => 1))).toBe(false);
  expect(isFolded(Array.from({ length: 15 }, () => 1))).toBe(true);
});
