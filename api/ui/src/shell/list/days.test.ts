import { expect, test } from "vitest";

import { grouped, groupOf, nameOf } from "./days";

const now = new Date(2026, 10, 22, 0, 30);

test.each([
  [new Date(2026, 10, 22, 0, 29), "today"],
  [new Date(2026, 10, 22, 9, 0), "today"],
  [new Date(2026, 10, 23, 9, 0), "today"],
  [new Date(2026, 10, 21, 23, 59), "yesterday"],
  [new Date(2026, 10, 20, 23, 59), "week"],
  [new Date(2026, 10, 16), "week"],
  [new Date(2026, 10, 15), "month"],
  [new Date(2026, 9, 24), "month"],
  [new Date(2026, 9, 23), "2026-10"],
  [new Date(2025, 11, 31), "2025-12"],
])("%s belongs to the group %s", (time, name) => {
  expect(nameOf(groupOf(time, now))).toBe(name);
});

test("the grouping splits a list where the group changes, and keeps its order", () => {
  const times = [new Date(2026, 10, 22), new Date(2026, 10, 21, 8), new Date(2026, 10, 21, 7), new Date(2026, 5, 2)];
  const groups = grouped(times, (time) => time, now);
  expect(groups.map(({ group, items }) => [nameOf(group), items.length])).toEqual([
    ["today", 1],
    ["yesterday", 2],
    ["2026-6", 1],
  ]);
  expect(groups.flatMap(({ items }) => items)).toEqual(times);
});
