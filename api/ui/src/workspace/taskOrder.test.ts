import { expect, test } from "vitest";

import type { Entity } from "../client/workspace";
import { compareOf, dueGroup, inRuns } from "./taskOrder";

const task = (id: string, priority: number | null, due_at: string | null) => ({ id, priority, due_at }) as Entity;
const tasks = [task("1", 3, "2026-12-05T00:00:00.000Z"), task("2", null, "2026-12-01T00:00:00.000Z"), task("3", 5, null), task("4", 3, null), task("5", 3, "2026-12-05T00:00:00.000Z")];

test.each([
  ["newest", "54321"],
  ["priority", "35142"],
  ["due", "25134"],
] as const)("tasks are ordered by %s, and equal ones have the newest first", (order, ids) => {
  expect(tasks.toSorted(compareOf(order)).map(({ id }) => id).join("")).toBe(ids);
});

test("a task is overdue, or due today, in the next seven days, later or never", () => {
  const now = new Date(2026, 10, 29, 12);
  const groups = ["2026-11-28", "2026-11-29T00:00:00.000Z", "2026-12-06", "2026-12-07", null].map((due_at) => dueGroup({ due_at }, now));
  expect(groups).toEqual(["overdue", "today", "week", "later", "never"]);
});

test("neighbours with one key are one run", () => {
  expect(inRuns([1, 3, 2, 4, 5], (number) => number % 2)).toEqual([
    { key: 1, items: [1, 3] },
    { key: 0, items: [2, 4] },
    { key: 1, items: [5] },
  ]);
});
