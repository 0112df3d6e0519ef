// A plan in a message: the newest state of the plan, with the newest state of each of its steps.
import type { Data, Part } from "./message";

export type Plan = Data["plan"];
export type Step = Plan["steps"][number];

/** Returns the plan with the states that later parts of the message have for its steps. */
export function withSteps(plan: Plan, parts: readonly Part[]): Plan {
  const newest = new Map<number, Step>();
  for (const part of parts) {
    // An ended plan has the states of all of its steps.
    if (part.type === "data-step" && part.data.planId === plan.id && !hasEnded(plan)) newest.set(part.data.step.stepNumber, part.data.step);
  }
  return newest.size === 0 ? plan : { ...plan, steps: plan.steps.map((step) => newest.get(step.stepNumber) ?? step) };
}

export function hasEnded({ status }: Plan): boolean {
  return status === "completed" || status === "failed";
}

/** Returns the step under way with the lowest number, and the number of steps. */
export function underWay(parts: readonly Part[]): { step: number; of: number } | undefined {
  const plan = parts.findLast((part) => part.type === "data-plan");
  if (!plan || hasEnded(plan.data)) return undefined;
  const { steps } = withSteps(plan.data, parts);
  const step = steps.find(({ status }) => status === "executing");
  return step && { step: step.stepNumber, of: steps.length };
}

/** Returns the runs that answer calls of the message, by their calls. */
export function childrenOf(parts: readonly Part[]): Map<string, string> {
  const children = new Map<string, string>();
  for (const part of parts) {
    if (part.type === "data-subagent") children.set(part.data.call_id, part.data.child_run_id);
  }
  return children;
}
