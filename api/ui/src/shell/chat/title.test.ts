import { expect, test } from "vitest";

import { firstWords, pageTitle } from "./title";

test("the title follows the conversation, and marks a running answer", () => {
  expect(pageTitle(undefined, false)).toBe("Holdfast");
  expect(pageTitle("Harbour lights", false)).toBe("Harbour lights · Holdfast");
  expect(pageTitle("Harbour lights", true)).toBe("● Harbour lights · Holdfast");
});

test("a long title ends between characters, and line breaks are spaces", () => {
  expect(pageTitle("one\n  two", false)).toBe("one two · Holdfast");
  expect(pageTitle("🌊".repeat(80), false)).toBe(`${"🌊".repeat(59)}… · Holdfast`);
});

test("the first words name a conversation without a title", () => {
  expect(firstWords("  Harbour lights\nand more")).toBe("Harbour lights");
  expect(firstWords(" \n ")).toBeUndefined();
});
