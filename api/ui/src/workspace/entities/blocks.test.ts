import { expect, test } from "vitest";

import { blocksOf, isSameBlock } from "./blocks";

test("blocks have all items in order", () => {
  const items = Array.from({ length: 45 }, (_, index) => index);
  const blocks = blocksOf(items);
  expect(blocks.map(({ length }) => length)).toEqual([20, 20, 5]);
  expect(blocks.flat()).toEqual(items);
  expect(blocksOf([])).toEqual([]);
});

test("an appended page leaves full blocks the same", () => {
  const items = Array.from({ length: 40 }, (_, index) => ({ index }));
  const before = blocksOf(items);
  const after = blocksOf([...items, { index: 40 }]);
  expect([isSameBlock(before[0]!, after[0]!), isSameBlock(before[1]!, after[1]!), isSameBlock(before[0]!, after[1]!)]).toEqual([true, true, false]);
});
