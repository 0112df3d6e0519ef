import { expect, test } from "vitest";

import { bringsOnlyFiles } from "./useTransfers";

test.each<[string[], boolean]>([
  [["Files"], true],
  [["text/html", "Files"], true],
  [["text/plain", "text/rtf", "Files"], false],
  [["text/plain"], false],
  [[], false],
])("a transfer of the types %j brings files to the page: %s", (types, expected) => {
  expect(bringsOnlyFiles({ types })).toBe(expected);
});
