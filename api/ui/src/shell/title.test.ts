import { expect, test } from "vitest";

import { firstWords, pageTitle } from "./title";

test("the title follows the conversation, and says when it is being answered", () => {
  expect(pageTitle(undefined, false)).toBe("Holdfast");
  expect(pageTitle("Harbour lights", false)).toBe("Harbour lights · Holdfast");
  expect(pageTitle("Harbour lights", true)).toBe("● Harbour lights · Holdfast");
});

test("a long title is cut between characters, and line breaks are spaces", () => {
  expect(pageTitle("one\n  two", false)).toBe("one two · Holdfast");
  expect(pageTitle("🌊".repeat(80), false)).toBe(`${"🌊".repeat(59)}… · Holdfast`);
});

test("before it has a title, a conversation is called by its first words", () => {
  expect(firstWords("  Harbour lights\nand more")).toBe("Harbour lights");
  expect(firstWords(" \n ")).toBeUndefined();
});
