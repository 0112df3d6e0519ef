import { expect, test } from "vitest";

import { codeIn } from "./fence";

test.each([
  ["it is open without a second fence", "```py\na\n\nb", { language: "py", code: "a\n\nb", isOpen: true }],
  ["its first fence is enough", "```", { language: undefined, code: "", isOpen: true }],
  ["it ends with a fence", "```py title\na\n```", { language: "py", code: "a", isOpen: false }],
  ["a longer fence ends it", "~~~\n```\n~~~~", { language: undefined, code: "```", isOpen: false }],
  ["its lines may end as on Windows", "```py\r\na\r\nb\r\n```\r", { language: "py", code: "a\nb", isOpen: false }],
  ["a malformed language is undefined", '```"><img\na\n```', { language: undefined, code: "a", isOpen: false }],
  ["text after it makes it undefined", "```\na\n```\nb", undefined],
  ["text before it makes it undefined", "b\n```\na\n```", undefined],
  ["inline code is none", "``` a`", undefined],
  ["an indented fence is left to markdown", "  ```\n  a", undefined],
])("a block of code: %s", (_, block, code) => expect(codeIn(block)).toEqual(code));
