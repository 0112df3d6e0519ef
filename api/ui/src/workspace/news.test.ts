import { expect, test } from "vitest";

import type { Entity } from "../client/workspace";
import { Shown } from "../shown";
import { type Listed, newestFirst } from "./listed";
import { change, fits, type News, news, tellChanged } from "./news";
import { withNews } from "./useListed";

const task = { id: "t", project_id: "p", state: "todo", priority: 3, due_at: "2026-12-01T00:00:00.000Z" } as Entity;

test.each([
  [{}, true],
  [{ project_id: "p", state: "todo", priority: 3 }, true],
  [{ state: "done" }, false],
  [{ state: "todo,blocked" }, true],
  [{ state: "blocked,done" }, false],
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

/** The list of a state, as a group of a project has it. */
function group(state: string, items: Entity[]) {
  const shown = new Shown<Listed<Entity>, News>({ items, next: null }, news, (listed, one) => withNews(listed, one, { kind: "task", filter: { state }, compare: newestFirst }));
  shown.subscribe(() => {});
  return () => shown.value.items.map(({ id, priority }) => `${id}${priority}`).join();
}

/** Changes the task, and returns how its test answers. */
function edit(from: Entity, fields: Partial<Entity>) {
  let settle!: { resolve(entity: Entity): void; reject(error: Error): void };
  const answer = new Promise<Entity>((resolve, reject) => (settle = { resolve, reject }));
  const end = change("task", from, fields, () => answer).catch(() => {});
  return { confirm: (entity: Entity) => (settle.resolve(entity), end), refuse: () => (settle.reject(new Error("refused")), end) };
}

const one = { id: "a", state: "todo", priority: 3, version: 1 } as Entity;

test("a task that moves between groups moves back if the server refuses it, and keeps its later change", async () => {
  const [todo, done] = [group("todo", [one]), group("done", [])];
  const moved = edit(one, { state: "done" });
  expect([todo(), done()]).toEqual(["", "a3"]);
  const raised = edit({ ...one, state: "done" }, { priority: 1 });
  expect([todo(), done()]).toEqual(["", "a1"]);
  await moved.refuse();
  expect([todo(), done()]).toEqual(["a1", ""]);
  await raised.confirm({ ...one, priority: 1, version: 2 });
  expect([todo(), done()]).toEqual(["a1", ""]);
});

test("a group that opens while a task moves into it has the task", async () => {
  const moved = edit(one, { state: "done" });
  const done = group("done", []);
  expect(done()).toBe("a3");
  await moved.confirm({ ...one, state: "done", version: 2 });
  expect(done()).toBe("a3");
});

test("an older version changes nothing", () => {
  const todo = group("todo", [{ ...one, version: 5 }]);
  tellChanged("task", { ...one, version: 4, priority: 1 });
  expect(todo()).toBe("a3");
  tellChanged("task", { ...one, version: 6, priority: 1 });
  expect(todo()).toBe("a1");
});
