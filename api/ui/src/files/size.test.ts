import { expect, test } from "vitest";

import { kindOf, sizeOf } from "./size";

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1 KB"],
  [1_500, "1.5 KB"],
  [20_480, "20 KB"],
  [1_048_576, "1 MB"],
  [3_670_016, "3.5 MB"],
  [67_108_864, "64 MB"],
])("%d bytes are %s", (bytes, size) => {
  expect(sizeOf(bytes)).toBe(size);
});

test.each([
  ["plan.pdf", "application/pdf", "PDF"],
  ["archive.tar.gz", "application/gzip", "GZ"],
  ["notes", "text/plain", "PLAIN"],
  ["notes", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "DOCUMENT"],
  ["notes", "", ""],
])("the file %s of the type %s is a %s", (name, mediaType, kind) => {
  expect(kindOf({ name, mediaType })).toBe(kind);
});
