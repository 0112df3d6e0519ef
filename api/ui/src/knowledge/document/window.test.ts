import { expect, test } from "vitest";

import { firstPart, type Part, partAfter, partBefore, piecesOf, STEP, withPart } from "./window";

const part = (start: number, text: string): Part => ({ start, end: start + [...text].length, text });

test("the first part begins before the passage", () => {
  expect(firstPart(10_000_000, { start: 5_000_000, end: 5_000_900 })).toEqual({ start: 4_997_000, end: 4_997_000 + STEP });
  expect(firstPart(500, { start: 100, end: 200 })).toEqual({ start: 0, end: 500 });
  expect(firstPart(500)).toEqual({ start: 0, end: 500 });
  // The text has become shorter since.
  expect(firstPart(500, { start: 90_000, end: 90_100 })).toEqual({ start: 0, end: 500 });
});

test("parts before and after end with the text", () => {
  const parts = [{ start: 20_000, end: 36_000, text: "" }];
  expect([partBefore(parts), partAfter(parts, 40_000)]).toEqual([
    { start: 4_000, end: 20_000 },
    { start: 36_000, end: 40_000 },
  ]);
  expect([partBefore([part(0, "abc")]), partAfter([part(0, "abc")], 3)]).toEqual([undefined, undefined]);
});

test("the page keeps few parts, and drops those at the other end", () => {
  const parts = [0, 1, 2, 3, 4, 5].map((place) => part(10 + place, "x"));
  expect(withPart(parts, part(16, "x")).map(({ start }) => start)).toEqual([11, 12, 13, 14, 15, 16]);
  expect(withPart(parts, part(9, "x")).map(({ start }) => start)).toEqual([9, 10, 11, 12, 13, 14]);
});

const marked = (pieces: ReturnType<typeof piecesOf>) => pieces.map(({ text, isMarked }) => (isMarked ? `<${text}>` : text)).join("");

test("places count characters beyond the basic plane as one", () => {
  expect(marked(piecesOf(part(0, "🌊🌊 tide 潮"), { start: 3, end: 7 }))).toBe("🌊🌊 <tide> 潮");
  expect(marked(piecesOf(part(0, "a👩‍🚀b"), { start: 1, end: 4 }))).toBe("a<👩‍🚀>b");
});

test("a passage may lie in several parts, or in none", () => {
  const passage = { start: 3, end: 7 };
  expect(marked(piecesOf(part(0, "01234"), passage))).toBe("012<34>");
  expect(marked(piecesOf(part(5, "56789"), passage))).toBe("<56>789");
  expect(marked(piecesOf(part(8, "89"), passage))).toBe("89");
  expect(marked(piecesOf(part(0, "012"), passage))).toBe("012");
  expect(marked(piecesOf(part(0, "012"), undefined))).toBe("012");
});
