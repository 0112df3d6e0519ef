import { expect, test } from "vitest";

import type { Change } from "../../client/workspace";
import { changedFields, inSets, nameIn, projectIn } from "./described";

const change = (rest: Partial<Change>) => ({ id: "c", change_set_id: "s", kind: "task", entity_id: "t", action: "update", before: null, after: null, user_id: "u", run_id: null, created_at: "", ...rest }) as Change;

test("an update tells its changed fields, without the version and the times", () => {
  const before = { title: "Call", state: "todo", version: 1, updated_at: "1", due_at: null };
  const after = { title: "Call", state: "done", version: 2, updated_at: "2", due_at: "2026-12-01" };
  expect(changedFields(change({ before, after }))).toEqual([
    { field: "state", before: "todo", after: "done" },
    { field: "due_at", before: null, after: "2026-12-01" },
  ]);
});

test("a creation is about the whole entity", () => {
  expect(changedFields(change({ action: "create", after: { title: "Call" } }))).toEqual([]);
});

test("a removed entity keeps its name and project in the history", () => {
  const removed = change({ action: "remove", before: { title: "Call", project_id: "p" } });
  expect([nameIn(removed), projectIn(removed)]).toEqual(["Call", "p"]);
  expect(projectIn(change({ kind: "project", entity_id: "p" }))).toBe("p");
  expect(nameIn(change({}))).toBeUndefined();
});

test("neighbours of one set are one entry", () => {
  const sets = inSets([change({ id: "1", change_set_id: "a" }), change({ id: "2", change_set_id: "a" }), change({ id: "3", change_set_id: "b" })]);
  expect(sets.map(({ id, changes }) => [id, changes.length])).toEqual([["a", 2], ["b", 1]]);
});
