import { expect, test } from "vitest";

import { bringsOnlyFiles } from "./useNoFiles";

test.each<[string[], boolean]>([
  [["Files"], true],
  [["text/html", "Files"], true],
  [["text/plain", "text/rtf", "Files"], false],
  [["text/plain"], false],
  [[], false],
])("a transfer of the types %j makes the page refuse files: %s", (types, expected) => {
  expect(bringsOnlyFiles({ types })).toBe(expected);
});
