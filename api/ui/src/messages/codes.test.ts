// The server's pages list the codes with which a run fails or warns; the page has words for each of them, in each language.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { en } from "../i18n/en";
import { zh } from "../i18n/zh";
import { warningIn } from "./reason";

/** Returns the codes in the first column of the table after a line. */
function codesAfter(page: string, line: string): string[] {
  const text = readFileSync(new URL(`../../../../docs/${page}`, import.meta.url), "utf8");
  const rows = text.split(`\n${line}`)[1]!.split(/\n\n(?!\|)/)[0]!.split("\n").filter((row) => row.startsWith("| `"));
  return rows.flatMap((row) => [...row.split("|")[1]!.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code!));
}

test("the page has words for each code with which a run fails", () => {
  // The scripted model fails where a developer's message says so.
  const codes = codesAfter("api.md", "`error.code` of a run").filter((code) => code !== "scripted_failure");
  expect(codes).toContain("model_key_refused");
  for (const { trouble } of [en, zh]) expect(codes.filter((code) => !Object.hasOwn(trouble.code, code))).toEqual([]);
});

test("the page has words for each warning, or shows the server's sentence where that names something", () => {
  const codes = codesAfter("events.md", "| `warning.raised` with `code`");
  expect(codes).toContain("empty_answer");
  const namesNothing = (code: string) => !warningIn(en.warning, { code, message: "a.png" }).includes("a.png");
  expect(codes.filter((code) => !Object.hasOwn(en.warning, code) && namesNothing(code))).toEqual([]);
  expect(codes.filter((code) => !Object.hasOwn(zh.warning, code))).toEqual([]);
});

test("a warning that names something keeps the name", () => {
  const refused = { code: "file_refused", message: "The model answers without a.png." };
  expect(warningIn(en.warning, refused)).toBe("The model answers without a.png.");
  expect(warningIn(zh.warning, refused)).toContain("a.png");
  expect(warningIn(en.warning, { code: "limit_reached", message: "20 calls" })).toBe(en.warning.limit_reached);
  expect(warningIn(en.warning, { code: "constructor", message: "as told" })).toBe("as told");
});
