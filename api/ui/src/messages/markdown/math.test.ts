import { expect, test } from "vitest";

import { BEGIN, END } from "./formula";
import { withMathKept } from "./math";

// The marks are written as « and ».
test.each([
  ["prices stay prices", "from $5 **bold** to $6 each", "from $5 **bold** to $6 each"],
  ["underscores of a formula are escaped", "so $a_i*b_j$ holds", "so «\\$a\\_i\\*b\\_j\\$» holds"],
  ["brackets keep their backslashes", "so \\(x_1\\) holds", "so «\\\\\\(x\\_1\\\\\\)» holds"],
  ["a formula on lines of its own is code", "$$\nx_1\n$$", "```math\nx_1\n```"],
  ["so is one in brackets", "\\[ x^2 \\]", "```math\nx^2\n```"],
  ["code is left alone", "`$a_b$` and `$c_d$`", "`$a_b$` and `$c_d$`"],
  ["fences are left alone", "```sh\necho $a_b$\n```", "```sh\necho $a_b$\n```"],
  ["open fences are left alone", "```sh\necho $a_b$", "```sh\necho $a_b$"],
  ["an escaped dollar begins nothing", "\\$a_b$ c", "\\$a_b$ c"],
  ["text around a formula and a fence stays", "a\n$$\nx_1\n$$\nb $c_d$\n```\n$e_f$\n```\ng", "a\n```math\nx_1\n```\nb «\\$c\\_d\\$»\n```\n$e_f$\n```\ng"],
  ["a formula may have lines and gaps", "$$ a\n\nb $$\n\n$$c_d$$", "```math\na\n\nb\n```\n\n```math\nc_d\n```"],
  ["what something stands behind is in its line", "$$ a_b $$ is\n$$\nc\n$$", "«\\$\\$ a\\_b \\$\\$» is\n```math\nc\n```"],
  ["no formula is empty", "$$\n\n$$", "$$\n\n$$"],
  ["a formula does not go over a blank line", "\\(a_b\n\nc\\)", "\\(a_b\n\nc\\)"],
  ["one that has no end is left alone", "\\(a_b $c_d", "\\(a_b $c_d"],
  ["signs that end nothing begin none", "``a $b_c$", "``a «\\$b\\_c\\$»"],
])("%s", (_, markdown, kept) => expect(withMathKept(markdown)).toBe(kept.replace("«", BEGIN).replace("»", END)));

/** The least time of the processor of some tries, in ms: what else the machine does makes a try longer, never shorter. */
function timeOf(markdown: string): number {
  const tries = Array.from({ length: 3 }, () => {
    const begin = process.cpuUsage();
    withMathKept(markdown);
    return process.cpuUsage(begin).user / 1_000;
  });
  return Math.min(...tries);
}

const of = (unit: string, length: number) => unit.repeat(length / unit.length);

test.each([
  ["spaces behind dollars", (n: number) => `$$${" ".repeat(n)}x`],
  ["lines behind dollars", (n: number) => `$$${"\n".repeat(n)}x`],
  ["formulas with something behind them", (n: number) => of("$$ a $$ b\n", n)],
  ["formulas with something behind them, before one that has an end", (n: number) => `${of("$$ a $$ b\n", n)}$$\nx\n$$`],
  ["dollars on lines of their own, with spaces", (n: number) => of(`$$${" ".repeat(97)}\n`, n)],
  ["brackets without an end", (n: number) => of("\\( ", n)],
  ["brackets whose end is behind a gap", (n: number) => `${of("\\( ", n)}\n\n\\)`],
  ["square brackets without an end", (n: number) => of("\\[\n", n)],
  ["dollars", (n: number) => of("$", n)],
  ["dollars with letters", (n: number) => of("$a ", n)],
  ["one long run of backticks", (n: number) => `$${of("`", n)}`],
  ["one that is no fence", (n: number) => `$${of("`", n)}x\``],
  ["runs of backticks that grow", (n: number) => `$ ${Array.from({ length: Math.sqrt(n * 2) }, (_, i) => "`".repeat(i + 1)).join(" ")}`],
  ["fences", (n: number) => `$a$\n${of("```\n$a$\n```\n", n)}`],
  ["backslashes", (n: number) => `$${of("\\", n)}`],
])("%s cost what other text costs", (_, hostile) => {
  const usual = timeOf(of("so $a_i$ and \\(b_j\\) hold, `c` too\n", 100_000));
  // What looks at everything twice for each sign takes thousands of times as long; the rest is for a machine at work.
  expect(timeOf(hostile(100_000))).toBeLessThan(20 * usual + 200);
});
