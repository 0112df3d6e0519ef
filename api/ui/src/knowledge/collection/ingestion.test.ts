import { expect, test } from "vitest";

import { stepIn } from "./ingestion";

test("a step and the end are read from events", () => {
  expect(stepIn('{"type":"document.progress","document_id":"d","stage":"index","done":3,"total":9}')).toEqual({ stage: "index", done: 3, total: 9 });
  expect(["run.completed", "run.failed", "run.cancelled", "attempt.started"].map((type) => stepIn(JSON.stringify({ type })))).toEqual(["ended", "ended", "ended", undefined]);
});
