import { expect, test } from "vitest";

import { bringsOnlyFiles } from "./useNoFiles";

test.each<[string[], boolean]>([
  [["Files"], true],
  [["text/html", "Files"], true],
  [["text/plain", "text/rtf", "Files"], false],
  [["text/plain"], false],
  [[], false],
])("of what has the types %j the page refuses the files: %s", (types, expected) => {
  expect(bringsOnlyFiles({ types })).toBe(expected);
});
