import { expect, test } from "vitest";

import { decoded } from "./decoded";

const bytes = (...values: number[]) => new Uint8Array(values);
const utf8 = (text: string) => new TextEncoder().encode(text);

test.each([
  ["UTF-8", utf8("Köln"), "text/csv; charset=utf-8", "Köln"],
  ["UTF-8 with a mark", bytes(0xef, 0xbb, 0xbf, 0x61), null, "a"],
  ["the named encoding", bytes(0x93, 0xfa, 0x96, 0x7b), 'text/csv; charset="shift_jis"', "日本"],
  ["UTF-16 with a mark, whatever is named", bytes(0xff, 0xfe, 0x61, 0, 0xf6, 0), "text/plain; charset=utf-8", "aö"],
  ["Windows-1252 that is said to be UTF-8", bytes(0x4b, 0xf6, 0x6c, 0x6e), "text/csv; charset=utf-8", "Köln"],
  ["an unknown encoding", utf8("a"), "text/plain; charset=klingon", "a"],
])("the text of %s is read", (_, file, contentType, text) => {
  expect(decoded(file, contentType, false)).toBe(text);
});

test("a cut inside of a character costs this character only", () => {
  expect(decoded(utf8("Köln").slice(0, 2), "text/csv; charset=utf-8", true)).toBe("K");
});
