import { expect, test } from "vitest";

import { type KnowledgeView, parseKnowledge } from "./address";
import { collectionPath, documentPath, passageIn } from "./paths";

const views: [string, KnowledgeView | undefined][] = [
  ["/k", { view: "collections" }],
  ["/k/", { view: "collections" }],
  ["/k/c1", { view: "collection", id: "c1" }],
  ["/k/d/a%20b", { view: "document", id: "a b", search: "?start=3&end=9" }],
  ["/k/d/x/more", undefined],
  ["/k/c1/x", undefined],
  ["/k/%", undefined],
  ["/c/x", undefined],
];

test.each(views)("%s is read", (path, view) => {
  expect(parseKnowledge(path, "?start=3&end=9")).toEqual(view);
});

test("paths lead back to their views", () => {
  expect(parseKnowledge(collectionPath("c 1"), "")).toEqual({ view: "collection", id: "c 1" });
  const [path = "", search] = documentPath("d", { start: 0, end: 4 }).split("?");
  expect(parseKnowledge(path, `?${search}`)).toEqual({ view: "document", id: "d", search: "?start=0&end=4" });
});

test.each([
  ["?start=0&end=4", { start: 0, end: 4 }],
  ["?start=9&end=9", undefined],
  ["?start=-1&end=9", undefined],
  ["?start=3", undefined],
  ["", undefined],
])("the passage of %j", (search, passage) => {
  expect(passageIn(search)).toEqual(passage);
});
