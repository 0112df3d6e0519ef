import { expect, test } from "vitest";

import { tableIn } from "./table";

const head = "| a | b |\n|---|:-:|";
const rows = (count: number) => Array.from({ length: count }, (_, i) => `\n| ${i} | x |`).join("");

test("each part has the head, and the parts have all rows", () => {
  const parts = tableIn(head + rows(100))!;
  expect(parts.length).toBe(4);
  expect(parts.map((part) => part.slice(head.length)).join("")).toBe(rows(100));
});

test("the parts before the last one stay unchanged while rows arrive", () => {
  expect(tableIn(head + rows(101))!.slice(0, 3)).toEqual(tableIn(head + rows(100))!.slice(0, 3));
});

test.each([
  ["a head alone is a table", head, true],
  ["a row may be half", `${head}\n| x`, true],
  ["a sign may be escaped", "| a \\| b |\n|---|", true],
  ["columns must be as many as the head's", "| a | b |\n|---|", false],
  ["text after it is a row", `${head}\n| 1 | 2 |\ntext`, true],
  ["a table with a quote after it is none", `${head}\n> text`, false],
  ["a table with code after a gap is none", `${head}\n\n    code`, false],
  ["a line of signs must have a hyphen", "| a |\n|  |", false],
  ["text is none", "a | b\n--|--", false],
])("a block and a table: %s", (_, block, is) => expect(tableIn(block) !== undefined).toBe(is));
