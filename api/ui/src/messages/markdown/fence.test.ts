import { expect, test } from "vitest";

import { codeIn } from "./fence";

test.each([
  ["it is open without a second fence", "```py\na\n\nb", { language: "py", code: "a\n\nb", isOpen: true }],
  ["its first fence is enough", "```", { language: undefined, code: "", isOpen: true }],
  ["it ends with a fence", "```py title\na\n```", { language: "py", code: "a", isOpen: false }],
  ["a longer fence ends it", "~~~\n```\n~~~~", { language: undefined, code: "```", isOpen: false }],
  ["its lines may end as on Windows", "```py\r\na\r\nb\r\n```\r", { language: "py", code: "a\nb", isOpen: false }],
  ["a strange language is none", '```"><img\na\n```', { language: undefined, code: "a", isOpen: false }],
  ["with something behind it, it is not all", "```\na\n```\nb", undefined],
  ["with something before it, it is not all", "b\n```\na\n```", undefined],
  ["in a line it is none", "``` a`", undefined],
  ["what is indented is for markdown", "  ```\n  a", undefined],
])("of code: %s", (_, block, code) => expect(codeIn(block)).toEqual(code));
