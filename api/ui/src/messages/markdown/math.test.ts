import { expect, test } from "vitest";

import { withMathKept } from "./math";

test.each([
  ["prices stay prices", "from $5 **bold** to $6 each", "from $5 **bold** to $6 each"],
  ["underscores of a formula are escaped", "so $a_i*b_j$ holds", "so \\$a\\_i\\*b\\_j\\$ holds"],
  ["brackets keep their backslashes", "so \\(x_1\\) holds", "so \\\\\\(x\\_1\\\\\\) holds"],
  ["a formula on lines of its own is code", "$$\nx_1\n$$", "```math\nx_1\n```"],
  ["so is one in brackets", "\\[ x^2 \\]", "```math\nx^2\n```"],
  ["code is left alone", "`$a_b$` and `$c_d$`", "`$a_b$` and `$c_d$`"],
  ["fences are left alone", "```sh\necho $a_b$\n```", "```sh\necho $a_b$\n```"],
  ["open fences are left alone", "```sh\necho $a_b$", "```sh\necho $a_b$"],
  ["an escaped dollar begins nothing", "\\$a_b$ c", "\\$a_b$ c"],
])("%s", (_, markdown, kept) => expect(withMathKept(markdown)).toBe(kept));
