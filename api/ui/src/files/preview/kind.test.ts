import { expect, test } from "vitest";

import { previewKind } from "./kind";

test.each([
  ["tides.csv", "text/csv", { as: "table" }],
  ["tides.TSV", "text/plain", { as: "table" }],
  ["main.rs", "text/x-rust", { as: "code", language: "rust" }],
  ["data", "application/json", { as: "code", language: "json" }],
  ["picture.svg", "text/plain", { as: "code", language: "svg" }],
  ["page.html", "text/html", { as: "code", language: "html" }],
  ["notes.txt", "text/plain", { as: "code", language: "text" }],
  ["Survey.md", "text/markdown", undefined],
  ["tides.csv", "application/octet-stream", undefined],
  ["report.pdf", "application/pdf", undefined],
])("%s of the type %s is shown as %o", (name, mediaType, kind) => {
  expect(previewKind({ name, mediaType })).toEqual(kind);
});
