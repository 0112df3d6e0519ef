import { expect, test } from "vitest";

import { BEGIN, END } from "./formula";
import { withMathKept } from "./math";

// « and » stand for the marks.
test.each([
  ["prices stay prices", "from $5 **bold** to $6 each", "from $5 **bold** to $6 each"],
  ["underscores of a formula are escaped", "so $a_i*b_j$ holds", "so «\\$a\\_i\\*b\\_j\\$» holds"],
  ["brackets keep their backslashes", "so \\(x_1\\) holds", "so «\\\\\\(x\\_1\\\\\\)» holds"],
  ["a formula on lines of its own is code", "$$\nx_1\n$$", "```math\nx_1\n```"],
  ["a formula in brackets on its line is code", "\\[ x^2 \\]", "```math\nx^2\n```"],
  ["code stays unchanged", "`$a_b$` and `$c_d$`", "`$a_b$` and `$c_d$`"],
  ["fences stay unchanged", "```sh\necho $a_b$\n```", "```sh\necho $a_b$\n```"],
  ["open fences stay unchanged", "```sh\necho $a_b$", "```sh\necho $a_b$"],
  ["an escaped dollar begins nothing", "\\$a_b$ c", "\\$a_b$ c"],
  ["text around a formula and a fence stays", "a\n$$\nx_1\n$$\nb $c_d$\n```\n$e_f$\n```\ng", "a\n```math\nx_1\n```\nb «\\$c\\_d\\$»\n```\n$e_f$\n```\ng"],
  ["a formula may have lines and gaps", "$$ a\n\nb $$\n\n$$c_d$$", "```math\na\n\nb\n```\n\n```math\nc_d\n```"],
  ["a formula with text after it is inline", "$$ a_b $$ is\n$$\nc\n$$", "«\\$\\$ a\\_b \\$\\$» is\n```math\nc\n```"],
  ["no formula is empty", "$$\n\n$$", "$$\n\n$$"],
  ["a formula does not go over a blank line", "\\(a_b\n\nc\\)", "\\(a_b\n\nc\\)"],
  ["the end of a line in an inline formula is a blank", "so \\(a +\n- b\\) holds", "so «\\\\\\(a \\+ \\- b\\\\\\)» holds"],
  ["a formula without an end stays text", "\\(a_b $c_d", "\\(a_b $c_d"],
  ["unmatched backticks begin no code", "``a $b_c$", "``a «\\$b\\_c\\$»"],
])("%s", (_, markdown, kept) => expect(withMathKept(markdown)).toBe(kept.replace("«", BEGIN).replace("»", END)));

/** Returns the least CPU time of several tries, in ms: other load on the machine makes a try longer, never shorter. */
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
  ["spaces after dollars", (n: number) => `$$${" ".repeat(n)}x`],
  ["lines after dollars", (n: number) => `$$${"\n".repeat(n)}x`],
  ["formulas with text after them", (n: number) => of("$$ a $$ b\n", n)],
  ["formulas with text after them, before one that has an end", (n: number) => `${of("$$ a $$ b\n", n)}$$\nx\n$$`],
  ["dollars on lines of their own, with spaces", (n: number) => of(`$$${" ".repeat(97)}\n`, n)],
  ["brackets without an end", (n: number) => of("\\( ", n)],
  ["brackets whose end is after a gap", (n: number) => `${of("\\( ", n)}\n\n\\)`],
  ["square brackets without an end", (n: number) => of("\\[\n", n)],
  ["dollars", (n: number) => of("$", n)],
  ["dollars with letters", (n: number) => of("$a ", n)],
  ["one long run of backticks", (n: number) => `$${of("`", n)}`],
  ["a run of backticks that is no fence", (n: number) => `$${of("`", n)}x\``],
  ["runs of backticks that grow", (n: number) => `$ ${Array.from({ length: Math.sqrt(n * 2) }, (_, i) => "`".repeat(i + 1)).join(" ")}`],
  ["fences", (n: number) => `$a$\n${of("```\n$a$\n```\n", n)}`],
  ["backslashes", (n: number) => `$${of("\\", n)}`],
])("%s cost no more than usual text", (_, hostile) => {
  const usual = timeOf(of("so $a_i$ and \\(b_j\\) hold, `c` too\n", 100_000));
  // A quadratic algorithm takes thousands of times as long; the margin is for a busy machine.
  expect(timeOf(hostile(100_000))).toBeLessThan(20 * usual + 200);
});
