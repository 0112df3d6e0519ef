import { expect, test } from "vitest";

import type { ChatMessage } from "../chat/message";
import { entitiesIn, entitiesOf, hasChanges } from "./entities";

const id = "01a216ec-187b-71a1-b8c8-d2d109f0f274";
const other = "01a216ec-16bb-742c-ad0e-15ec3cafa19c";

const answer = (...parts: unknown[]) => ({ id: "m", role: "assistant", parts }) as unknown as ChatMessage;
const call = (toolName: string, output: unknown, state = "output-available") => ({ type: "dynamic-tool", toolName, toolCallId: toolName, state, input: {}, output });

test.each([
  ["a line", `Created:\n- task ${id}: Measure the tide (todo)`, [{ kind: "task", id, name: "Measure the tide" }]],
  ["an indented line", `  - goal ${id}: Open: the quay (by spring) (open)`, [{ kind: "goal", id, name: "Open: the quay (by spring)" }]],
  ["a name without facts", `- project ${id}: Harbour`, [{ kind: "project", id, name: "Harbour" }]],
  ["an entity twice", `- task ${id}: A\n- task ${id}: A`, [{ kind: "task", id, name: "A" }]],
  ["a list of the result", { entities: [{ kind: "plan", id, name: "Repair" }, { kind: "person", id, name: "x" }, 3] }, [{ kind: "plan", id, name: "Repair" }]],
  ["parts of a text", { content: [{ type: "text", text: `- task ${id}: A` }] }, [{ kind: "task", id, name: "A" }]],
  ["no entity", "The task is done.", []],
  ["no text", null, []],
])("%s names its entities", (_, output, entities) => {
  expect(entitiesIn(output)).toEqual(entities);
});

test("an answer has the entities that it has changed, not those that it has read", () => {
  const data = (toolCallId: string, name: string) => ({ type: "data-call", data: { toolCallId, durationMs: 1, entities: [{ kind: "goal", id: name, name }] } });
  const message = answer(
    call("list_onto_tasks", `- task ${other}: Read`),
    data("list_onto_tasks", "Listed"),
    call("create_onto_task", `Created:\n- task ${id}: A`),
    call("update_onto_goal", "Updated"),
    data("update_onto_goal", "B"),
    call("update_onto_task", `- task ${other}: Failed`, "output-error"),
  );
  expect(entitiesOf(message).map(({ name }) => name)).toEqual(["A", "B"]);
});

test.each([
  ["a created task", call("create_onto_task", "Created"), true],
  ["a document of a task", call("create_task_document", "Created"), true],
  ["a failed change", call("update_onto_task", undefined, "output-error"), false],
  ["a list", call("list_onto_tasks", ""), false],
  ["a step of a plan", { type: "data-step", data: { planId: "p", step: { status: "completed", tools: ["delete_onto_goal"] } } }, true],
  ["a step that is not done", { type: "data-step", data: { planId: "p", step: { status: "executing", tools: ["delete_onto_goal"] } } }, false],
])("%s changes the workspace: %s", (_, part, is) => {
  expect(hasChanges(answer(part))).toBe(is);
});
