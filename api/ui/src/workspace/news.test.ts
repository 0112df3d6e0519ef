import { expect, test } from "vitest";

import type { Entity } from "../client/workspace";
import { fits } from "./news";

const task = { id: "t", project_id: "p", state: "todo", priority: 3, due_at: "2026-12-01T00:00:00.000Z" } as Entity;

test.each([
  [{}, true],
  [{ project_id: "p", state: "todo", priority: 3 }, true],
  [{ state: "done" }, false],
  [{ priority: undefined }, true],
  [{ priority: 4 }, false],
  [{ due_before: "2026-12-02" }, true],
  [{ due_before: "2026-12-01" }, false],
  [{ plan_id: "x" }, false],
])("a list with the filter %o has the task: %s", (filter, has) => {
  expect(fits(task, filter)).toBe(has);
});

test("a task without a due date is not due before any day", () => {
  expect(fits({ ...task, due_at: null }, { due_before: "2030-01-01" })).toBe(false);
});
