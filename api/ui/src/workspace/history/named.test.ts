import { expect, test } from "vitest";

import { entitiesIn } from "./named";

const id = "01a216ec-16bb-742c-ad0e-15ec3cafa19c";

test("the sentence of a refused undo names its entities", () => {
  const detail = `These entities were changed again since, or others depend on them: task ${id}, project ${id} and 3 more. With ?force=true they stay.`;
  expect(entitiesIn(detail)).toEqual([
    { kind: "task", id },
    { kind: "project", id },
  ]);
});

test("a text without ids names none", () => {
  expect(entitiesIn("The task is done, and edge 01a2 too.")).toEqual([]);
});
