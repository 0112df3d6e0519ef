import { expect, test } from "vitest";

import type { Part } from "./message";
import { type Plan, type Step, childrenOf, underWay, withSteps } from "./plans";

const step = (stepNumber: number, status: Step["status"]): Step => ({ stepNumber, description: `s${stepNumber}`, tools: [], executorRequired: false, dependsOn: [], status });
const plan = (status: Plan["status"], ...steps: Step[]): Part & { type: "data-plan" } => ({ type: "data-plan", id: "p", data: { id: "p", status, steps, metadata: { goal: "g" } } });
const change = (planId: string, step: Step): Part => ({ type: "data-step", data: { planId, step } });
const statuses = ({ steps }: Plan) => steps.map(({ status }) => status);

test("a plan has the newest state of each step", () => {
  const made = plan("executing", step(1, "pending"), step(2, "pending"));
  const parts = [made, change("p", step(1, "executing")), change("p", step(1, "completed")), change("p", step(2, "executing")), change("other", step(2, "failed"))];
  expect(statuses(withSteps(made.data, parts))).toEqual(["completed", "executing"]);
  expect(underWay(parts)).toEqual({ step: 2, of: 2 });
});

test("an ended plan needs no other part", () => {
  const ended = plan("failed", step(1, "completed"), step(2, "failed"));
  const parts = [ended, change("p", step(2, "executing"))];
  expect([statuses(withSteps(ended.data, parts)), underWay(parts)]).toEqual([["completed", "failed"], undefined]);
});

test("a call leads to the run that answers it", () => {
  const parts: Part[] = [{ type: "data-subagent", id: "r", data: { call_id: "c", child_run_id: "r" } }];
  expect(childrenOf(parts)).toEqual(new Map([["c", "r"]]));
});
