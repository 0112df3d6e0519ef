import { expect, test } from "vitest";

import { isLast, type RunEvent } from "../../client/events";
import { stepIn } from "./ingestion";

test("a step is read from its event", () => {
  const event = { type: "document.progress", document_id: "d", stage: "index", done: 3, total: 9 } as RunEvent;
  expect(stepIn(event)).toEqual({ stage: "index", done: 3, total: 9 });
  expect(stepIn({ type: "attempt.started" })).toBeUndefined();
});

test("a run has one last event", () => {
  const types = ["run.completed", "run.failed", "run.cancelled", "run.queued", "step.completed"];
  expect(types.map((type) => isLast({ type }))).toEqual([true, true, true, false, false]);
});
