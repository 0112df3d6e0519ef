import { expect, test } from "vitest";

import type { Part } from "../chat/message";
import { citationsOf } from "./citations";
import { segmentsOf } from "./segments";

const source = (number: number, more = {}): Part => ({
  type: "source-document",
  sourceId: `citation-${number}`,
  mediaType: "text/plain",
  title: `Document ${number}`,
  providerMetadata: { holdfast: { number, id: `d${number}`, chunk: 0, title: `Document ${number}`, start: 10, end: 20, score: 0.5, ...more } },
});

test("citations have the order of their numbers, and a number once", () => {
  const parts: Part[] = [{ type: "text", text: "a [2] b [1]", state: "streaming" }, source(2, { page: 3 }), source(1), source(2, { start: 99, end: 100 })];
  expect(citationsOf(parts)).toEqual([
    { number: 1, documentId: "d1", title: "Document 1", start: 10, end: 20 },
    { number: 2, documentId: "d2", title: "Document 2", page: 3, start: 10, end: 20 },
  ]);
});

test("a source of another server is no citation", () => {
  const { providerMetadata: _, ...bare } = source(1) as Extract<Part, { type: "source-document" }>;
  expect(citationsOf([bare, source(2, { id: 5 }), { type: "source-url", sourceId: "s", url: "https://x.test" }])).toEqual([]);
});

test("a citation ends no text", () => {
  const parts: Part[] = [{ type: "text", text: "a [1] b", state: "streaming" }, source(1)];
  expect(segmentsOf(parts)).toEqual([{ key: "0", kind: "text", text: "a [1] b", isStreaming: true }]);
});
