import { expect, test } from "vitest";

import type { Call } from "./call";
import { draftOf, edited, stepsIn } from "./draftSteps";

const call = (toolName: string, input: unknown): Call => ({ type: "dynamic-tool", toolName, toolCallId: "c", state: "approval-requested", input, approval: { id: "a" } });

const steps = [
  { step_number: 1, description: "a", tools: ["kb__count"], executor_required: true, depends_on: [] },
  { step_number: 2, description: "b", tools: [], executor_required: false, depends_on: [1] },
  { step_number: 3, description: "c", tools: [], executor_required: false, depends_on: [1, 2] },
];

test("a question about a plan has its steps, its goal and the reviewer's notes", () => {
  const draft = draftOf(call("agent_create_plan", { steps, metadata: { goal: "g" }, notes: "shorter" }));
  expect([draft?.goal, draft?.notes, draft?.steps.map(({ description }) => description)]).toEqual(["g", "shorter", ["a", "b", "c"]]);
  expect(draftOf(call("kb__count", { steps }))).toBeUndefined();
  expect(draftOf(call("agent_create_plan", { goal: "g" }))).toBeUndefined();
});

test("steps are read as the reader has left them", () => {
  const left = draftOf(call("agent_create_plan", { steps }))!.steps.slice(1);
  expect(stepsIn(JSON.stringify(left))).toEqual(left);
  for (const broken of ["", "[", "{}", '[{"number":1}]']) expect(stepsIn(broken)).toBeUndefined();
});

test("removed steps leave no gap, and no step depends on them", () => {
  const [first, , third] = draftOf(call("agent_create_plan", { steps }))!.steps;
  expect(edited([first!, { ...third!, description: "C" }]).steps).toEqual([
    { step_number: 1, description: "a", tools: ["kb__count"], executor_required: true, depends_on: [] },
    { step_number: 2, description: "C", tools: [], executor_required: false, depends_on: [1] },
  ]);
});
