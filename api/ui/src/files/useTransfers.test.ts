import { expect, test } from "vitest";

import { bringsOnlyFiles, contentOf } from "./useTransfers";

const transfer = (types: string[], text: string, names: string[]) => ({ types, getData: () => text, files: names.map((name) => new File([], name)) as unknown as FileList });

test.each<[string[], boolean]>([
  [["Files"], true],
  [["text/html", "Files"], true],
  [["text/plain", "text/rtf", "Files"], false],
  [["text/plain"], false],
  [[], false],
])("a transfer of the types %j brings files to the page: %s", (types, expected) => {
  expect(bringsOnlyFiles(transfer(types, "1\t2", ["image.png"]))).toBe(expected);
});

test.each<[string, string[], boolean]>([
  ["report.pdf", ["report.pdf"], true],
  ["Bericht für März.pdf".normalize("NFD"), ["Bericht für März.pdf"], true],
  ["a.txt\rb.txt", ["a.txt", "b.txt"], true],
  ["/home/ann/a b.txt\nfile:///home/ann/c%20d.txt\n", ["a b.txt", "c d.txt"], true],
  ["C:\\Users\\ann\\a.txt", ["a.txt"], true],
  ["file:///home/ann/100%.txt", ["100%.txt"], true],
  ["a.txt\nand a sentence", ["a.txt"], false],
  ["another.pdf", ["report.pdf"], false],
  ["", ["report.pdf"], false],
])("a text %j beside the files %j is only their names: %s", (text, names, expected) => {
  expect(bringsOnlyFiles(transfer(["text/plain", "Files"], text, names))).toBe(expected);
  expect(bringsOnlyFiles(transfer(["text/plain", "text/html", "Files"], text, names))).toBe(false);
});

test("a folder is none of the files that a transfer brings", () => {
  const item = (name: string, isDirectory?: boolean) => ({ kind: "file", getAsFile: () => new File([], name), webkitGetAsEntry: () => isDirectory === undefined ? null : { isDirectory } });
  const brought = (...items: object[]) => contentOf({ items } as unknown as DataTransfer);
  const names = ({ files, hasFolder }: ReturnType<typeof contentOf>) => [files.map(({ name }) => name), hasFolder];
  expect(names(brought({ kind: "string" }, item("a.txt", false), item("holiday", true)))).toEqual([["a.txt"], true]);
  expect(names(brought(item("pasted.png")))).toEqual([["pasted.png"], false]);
});
