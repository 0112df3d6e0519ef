import { expect, test } from "vitest";

import { entityPath, parseWorkspace, projectPath, type WorkspaceView } from "./address";

const views: [string, WorkspaceView | undefined][] = [
  ["/w", { view: "projects" }],
  ["/w/", { view: "projects" }],
  ["/w/templates", { view: "templates" }],
  ["/w/p1", { view: "project", projectId: "p1", section: "tasks" }],
  ["/w/p1/goals", { view: "project", projectId: "p1", section: "goals" }],
  ["/w/p1/history", { view: "project", projectId: "p1", section: "history" }],
  ["/w/p1/tasks/t1", { view: "project", projectId: "p1", section: "tasks", open: { kind: "task", id: "t1" } }],
  ["/w/p1/documents/a%20b", { view: "project", projectId: "p1", section: "documents", open: { kind: "document", id: "a b" } }],
  ["/w/p1/history/x", undefined],
  ["/w/p1/people", undefined],
  ["/w/p1/tasks/t1/more", undefined],
  ["/w/%", undefined],
  ["/c/p1", undefined],
  ["/", undefined],
];

test.each(views)("%s is read", (path, view) => {
  expect(parseWorkspace(path)).toEqual(view);
});

test("paths lead back to their views", () => {
  expect(parseWorkspace(projectPath("p 1", "plans"))).toMatchObject({ projectId: "p 1", section: "plans" });
  expect(parseWorkspace(entityPath("goal", "g", "p"))).toMatchObject({ projectId: "p", open: { kind: "goal", id: "g" } });
  expect(entityPath("project", "p")).toBe("/w/p");
  expect(entityPath("task", "t")).toBe("/w/-/tasks/t");
});
