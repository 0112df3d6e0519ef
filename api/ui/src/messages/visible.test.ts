import { expect, test } from "vitest";

import { visible } from "./visible";

test.each([
  ["send 10 to ann", "send 10 to ann"],
  ["two\n\tlines", "two\n\tlines"],
  ["a\u202eb\u200bc", "a\\u202eb\\u200bc"],
  ["\u2066x\u2069", "\\u2066x\\u2069"],
  ["a\u{e0041}", "a\\udb40\\udc41"],
  ["\u0000\u001b\u009b", "\\u0000\\u001b\\u009b"],
  ["\ufeffä 潮 👩🏽", "\\ufeffä 潮 👩🏽"],
])("the page shows %j as %s", (text, expected) => expect(visible(text)).toBe(expected));

test("escaping keeps the meaning of the JSON", () => {
  const input = { to: "a\u202eb", more: ["\u{e0041}"] };
  expect(JSON.parse(visible(JSON.stringify(input, null, 2)))).toEqual(input);
});
