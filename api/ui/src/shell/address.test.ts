import { expect, test } from "vitest";

import { linkOf, parseAddress, pathOf, placeIn } from "./address";

test.each([
  ["/", { at: "new" }],
  ["/index.html", { at: "new" }],
  ["/c/01a2", { at: "conversation", id: "01a2" }],
  ["/c/01a2/", { at: "conversation", id: "01a2" }],
  ["/c/a%2Fb", { at: "conversation", id: "a/b" }],
  ["/memories", { at: "memories" }],
  ["/memories/", { at: "memories" }],
  ["/memories/01a2", { at: "nowhere" }],
  ["/c/", { at: "nowhere" }],
  ["/c/a/b", { at: "nowhere" }],
  ["/c/%E0%A4%A", { at: "nowhere" }],
  ["/d/01a2", { at: "nowhere" }],
])("%s is %o", (path, address) => {
  expect(parseAddress(path)).toEqual(address);
});

test("an id survives its path, whatever characters it has", () => {
  for (const id of ["01a2", "a/b", "a b?c#d%", "对话"]) {
    expect(parseAddress(pathOf(id))).toEqual({ at: "conversation", id });
  }
});

test("a link names a message, and the page reads it back", () => {
  const link = new URL(linkOf("a b", "c#d/é"), "http://x");
  expect([link.pathname, placeIn(link.hash)]).toEqual(["/c/a%20b", "c#d/é"]);
  expect(linkOf("a", undefined)).toBe("/c/a");
  expect([placeIn(""), placeIn("#"), placeIn("#%")]).toEqual([undefined, undefined, undefined]);
});
