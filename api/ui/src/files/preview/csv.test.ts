import { expect, test } from "vitest";

import { tableIn } from "./csv";

const rows = (text: string) => tableIn(text, false).rows;

test.each([
  ["commas", "a,b\n1,2\n", [["a", "b"], ["1", "2"]]],
  ["semicolons, with commas as decimal signs", "a;b\n1,5;2,5\n", [["a", "b"], ["1,5", "2,5"]]],
  ["tabs", "a\tb\n1\t2", [["a", "b"], ["1", "2"]]],
  ["a separator that the file declares", "sep=|\na|b,c\n", [["a", "b,c"]]],
  ["quotes with separators, quotes and lines", '"a, b","c ""d""","e\nf"\n', [["a, b", 'c "d"', "e\nf"]]],
  ["quotes inside of a field", '5" pipe,6" pipe\n', [['5" pipe', '6" pipe']]],
  ["the ends of lines of Windows, and blank lines", "a,b\r\n\r\n1,\r\n", [["a", "b"], ["1", ""]]],
  ["no text", "", []],
])("a table has %s", (_, text, expected) => {
  expect(rows(text)).toEqual(expected);
});

test("a table has bounded rows, columns and fields", () => {
  const limits = { rows: 2, columns: 2, field: 3 };
  expect(tableIn("a,b\n1,2\n3,4\n", false, limits)).toEqual({ rows: [["a", "b"], ["1", "2"]], hasMoreRows: true, hasMoreColumns: false });
  expect(tableIn("abcd,b,c\n", false, limits)).toEqual({ rows: [["abc…", "b"]], hasMoreRows: false, hasMoreColumns: true });
});

test("the last line of a cut text is left out", () => {
  expect(tableIn("a,b\n1,2\n3,", true)).toEqual({ rows: [["a", "b"], ["1", "2"]], hasMoreRows: true, hasMoreColumns: false });
});

test("a quote that never ends costs one pass", () => {
  expect(rows(`a,"${"x".repeat(300_000)}`)[0]![1]!.length).toBe(501);
});
