import { expect, test } from "vitest";

import type { RunEvent } from "../../client/events";
import { changedBy, hasUnnamedChanges } from "./useLiveChanges";

const entities = [{ kind: "task", id: "t" }];

test("a call that changes the workspace names what it has changed", () => {
  const call = (name: string, more = {}) => changedBy({ type: "tool_call.completed", name, ...more } as RunEvent);
  expect(call("update_onto_task", { entities })).toEqual(entities);
  expect(call("list_onto_tasks", { entities })).toEqual([]);
  expect(call("delete_onto_task")).toEqual([]);
  expect(changedBy({ type: "message.delta" })).toEqual([]);
});

test("a step, a subagent and the end of a run may have changed more", () => {
  const types = ["plan_step.completed", "subagent.completed", "run.failed", "tool_call.completed", "plan_step.started"];
  expect(types.map((type) => hasUnnamedChanges({ type }))).toEqual([true, true, true, false, false]);
});
