// The steps of a plan that waits for an approval, and their changes.
import { type Call, nameOf, PLAN_TOOL } from "./call";

export type DraftStep = {
  /** Its number in the plan as the agent made it. */
  number: number;
  description: string;
  /** The fields that the reader does not change. */
  rest: { tools: unknown; executor_required: unknown };
  dependsOn: readonly number[];
};

/** Returns the steps and the reviewer's notes, if the call waits for the approval of a plan. */
export function draftOf(call: Call): { goal: string; steps: DraftStep[]; notes?: string } | undefined {
  if (nameOf(call).tool !== PLAN_TOOL || !isObject(call.input) || !Array.isArray(call.input.steps)) return undefined;
  const { input } = call;
  const steps = (input.steps as unknown[]).filter(isObject).map((step, index) => ({
    number: numberOf(step.step_number ?? step.stepNumber) ?? index + 1,
    description: typeof step.description === "string" ? step.description : "",
    rest: { tools: step.tools ?? [], executor_required: step.executor_required ?? step.executorRequired ?? false },
    dependsOn: [step.depends_on ?? step.dependsOn ?? []].flat().flatMap((number) => numberOf(number) ?? []),
  }));
  const metadata = isObject(input.metadata) ? input.metadata : input;
  const goal = typeof metadata.goal === "string" ? metadata.goal : "";
  return { goal, steps, ...(typeof input.notes === "string" && input.notes !== "" ? { notes: input.notes } : {}) };
}

/** Returns the steps as the reader has left them, if the browser has kept them. */
export function stepsIn(kept: string): DraftStep[] | undefined {
  if (kept === "") return undefined;
  try {
    const steps: unknown = JSON.parse(kept);
    return Array.isArray(steps) && steps.every(isStep) ? steps : undefined;
  } catch {
    return undefined;
  }
}

function isStep(step: unknown): step is DraftStep {
  return isObject(step) && typeof step.number === "number" && typeof step.description === "string" && isObject(step.rest) && Array.isArray(step.dependsOn);
}

/** Returns the edited input of the approval. Steps get new numbers, and no step depends on a removed one. */
export function edited(steps: readonly DraftStep[]): { steps: unknown[] } {
  const numbers = new Map(steps.map((step, index) => [step.number, index + 1]));
  return {
    steps: steps.map((step, index) => ({
      step_number: index + 1,
      description: step.description,
      ...step.rest,
      depends_on: step.dependsOn.flatMap((number) => numbers.get(number) ?? []),
    })),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
