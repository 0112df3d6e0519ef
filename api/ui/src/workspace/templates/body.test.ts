import { expect, test } from "vitest";

import { objectIn } from "./body";

test.each([
  ['{"goals": []}', { goals: [] }],
  ["{}", {}],
  ["[]", undefined],
  ["null", undefined],
  ["3", undefined],
  ["{", undefined],
])("%s is the content %o", (text, content) => {
  expect(objectIn(text)).toEqual(content);
});
