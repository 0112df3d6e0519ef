import { expect, test } from "vitest";

import { messages } from "../i18n/en/messages";
import { isFailedCall, nowDoing, wasDone } from "./doing";
import type { Item } from "./segments";

const call = (toolName: string, state: string): Item =>
  ({ kind: "call", call: { type: "dynamic-tool", toolName, toolCallId: toolName, state, input: {}, errorText: "no", providerExecuted: true } }) as Item;
const thought: Item = { kind: "reasoning", text: "hm", isStreaming: false };
const { activity } = messages;

test.each([
  ["one call", [call("kb__search", "input-available")], "Calling search…"],
  ["one call that the model writes", [call("search", "input-streaming")], "Preparing search…"],
  ["two calls at once", [call("a", "input-available"), call("b", "input-streaming")], "Calling 2 tools…"],
  ["one call of two", [call("a", "output-available"), call("b", "input-available")], "Calling b…"],
])("the line of an active activity: %s", (_, items, line) => expect(nowDoing(activity, items, undefined)).toBe(line));

test.each([
  ["one call", [call("a", "output-available")], "Called a"],
  ["one call that has failed", [call("a", "output-error")], "a failed"],
  ["a thought and a call that has failed", [thought, call("a", "output-error")], "Thought · a failed"],
  ["two calls, of which one has failed", [call("a", "output-error"), call("b", "output-available")], "2 calls · 1 failed"],
  ["a thought", [thought], "Thought"],
])("the line of an ended activity: %s", (_, items, line) => expect(wasDone(activity, items, undefined)).toBe(line));

const id = "01a216ec-187b-71a1-b8c8-d2d109f0f274";
const deed = (toolName: string, input: unknown, output: string | undefined): Item =>
  ({ kind: "call", call: { type: "dynamic-tool", toolName, toolCallId: toolName, state: output === undefined ? "output-error" : "output-available", input, output, errorText: "no", providerExecuted: true } }) as Item;
const plain = (line: string) => line.replace(/[\u2068\u2069]/g, "");

test.each([
  ["a created project", [deed("create_onto_project", { name: "Garden party" }, "Created")], "Created the project Garden party"],
  ["a changed task", [deed("update_onto_task", { task_id: id, state: "done" }, `Updated:\n- task ${id}: Buy lanterns (done)`)], "Changed the task Buy lanterns"],
  ["a deleted goal", [deed("delete_onto_goal", { goal_id: id }, `Deleted the goal ${id}.`)], "Deleted the goal"],
  ["a document of a task", [deed("create_task_document", { title: "Menu" }, "Created")], "Created the document Menu"],
  ["a list", [deed("list_onto_tasks", {}, "")], "Looked through the tasks"],
  ["a change after a look", [deed("list_onto_tasks", {}, ""), deed("create_onto_task", { title: "Buy lanterns" }, "Created")], "Created the task Buy lanterns · 1 more call"],
  ["a change that has failed", [deed("create_onto_task", { title: "x" }, undefined)], "create_onto_task failed"],
])("the workspace's tools are told in words: %s", (_, items, line) => expect(plain(wasDone(activity, items, undefined))).toBe(line));

test("an activity fails only if it is a single failed call", () => {
  expect(isFailedCall([call("a", "output-error")])).toBe(true);
  expect(isFailedCall([thought, call("a", "output-error")])).toBe(false);
});
