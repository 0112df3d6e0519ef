// The page shows formulas as the model wrote them. Markdown would read their backslashes and underscores, so this file
// protects them. A formula on separate lines becomes code of the language `math`. An inline formula becomes escaped
// text between two marks, and `formula.ts` makes code of it after parsing. An answer may be hostile, so this file only
// moves forward and reads nothing twice.
import { ends, fenceIn } from "./fence";
import { BEGIN, END } from "./formula";

/** Returns the markdown of a block with its formulas protected. */
export function withMathKept(markdown: string): string {
  if (!/\$|\\[([]/.test(markdown)) return markdown;
  const kept: string[] = [];
  let lines: string[] = [];
  let fence: string | undefined;
  for (const line of markdown.split("\n")) {
    const opening = fence === undefined ? fenceIn(line) : undefined;
    if (opening && lines.length > 0) {
      kept.push(keep(lines.join("\n")));
      lines = [];
    }
    lines.push(line);
    fence ??= opening;
    if (fence === undefined || opening || !ends(line, fence)) continue;
    kept.push(lines.join("\n"));
    lines = [];
    fence = undefined;
  }
  if (lines.length > 0) kept.push(fence === undefined ? keep(lines.join("\n")) : lines.join("\n"));
  return kept.join("\n");
}

/** Takes a text without fences. */
function keep(text: string): string {
  let kept = "";
  let at = 0;
  const endOf = { $$: lineEndings(text, /\$\$[ \t]*$/gm), "\\[": lineEndings(text, /\\\][ \t]*$/gm) };
  for (const { 0: opening, 1: mark, index } of text.matchAll(/^[ \t]*(\$\$|\\\[)/gm)) {
    if (index < at) continue;
    const start = index + opening.length;
    const end = endOf[mark as keyof typeof endOf](start);
    if (!end) continue;
    const formula = text.slice(start, end.start);
    // A formula that ends on its first line, and has text after it there, is inline.
    const isInLine = formula.split("\n", 1)[0]!.includes(mark === "$$" ? "$$" : "\\]");
    if (isInLine || formula.trim() === "") continue;
    kept += `${inline(text.slice(at, index))}\`\`\`math\n${formula.trim()}\n\`\`\``;
    at = end.end;
  }
  return kept + inline(text.slice(at));
}

/** Finds the next of these ends from a position, which must not decrease. */
function lineEndings(text: string, pattern: RegExp) {
  let found: { start: number; end: number } | undefined;
  let isOver = false;
  return (from: number) => {
    if (isOver || (found && found.start >= from)) return found;
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    isOver = match === null;
    found = match ? { start: match.index, end: pattern.lastIndex } : undefined;
    return found;
  };
}

function inline(text: string): string {
  const code = codeIn(text);
  const formula = formulasIn(text);
  const signs = /[`$\\]/g;
  let kept = "";
  let at = 0;
  for (let sign = signs.exec(text); sign; sign = signs.exec(text)) {
    const { index } = sign;
    kept += text.slice(at, index);
    const end = sign[0] === "`" ? code(index) : formula(index);
    // A backslash also skips the next character: an escaped dollar begins no formula.
    at = end ?? index + (sign[0] === "\\" ? 2 : 1);
    const taken = text.slice(index, at);
    kept += end !== undefined && sign[0] !== "`" ? BEGIN + taken.replace(/[!-/:-@[-`{-~]/g, "\\$&").replace(/\r?\n/g, " ") + END : taken;
    signs.lastIndex = at;
  }
  return kept + text.slice(at);
}

/**
 * Returns the end of the code that begins at a position, or of its backticks alone. Code ends with as many backticks as
 * it began with.
 */
function codeIn(text: string): (at: number) => number | undefined {
  const endings = new Map<number, number>();
  const newest = new Map<number, number>();
  for (const { 0: signs, index } of text.matchAll(/`+/g)) {
    const end = index + signs.length;
    endings.set(index, end);
    const before = newest.get(signs.length);
    if (before !== undefined) endings.set(before, end);
    newest.set(signs.length, index);
  }
  return (at) => endings.get(at);
}

/** Returns the end of the formula that begins at a position; successive positions must not decrease. */
function formulasIn(text: string): (at: number) => number | undefined {
  const bracket = next(text, "\\)");
  const blank = next(text, "\n\n");
  return (at) => {
    if (text.startsWith("\\(", at)) {
      const end = bracket(at + 3);
      const gap = blank(at + 2);
      return end < 0 || (gap >= 0 && gap < end) ? undefined : end + 2;
    }
    return text[at] === "$" ? endOfDollars(text, at) : undefined;
  };
}

/** This rule is pandoc's: no white space inside of the dollars, no digit after them, so that prices stay prices. */
function endOfDollars(text: string, at: number): number | undefined {
  const isDouble = text[at + 1] === "$";
  const start = at + (isDouble ? 2 : 1);
  const end = text.indexOf("$", start);
  const content = text.slice(start, Math.max(start, end));
  if (content === "" || content.includes("\n")) return undefined;
  if (isDouble) return text[end + 1] === "$" ? end + 2 : undefined;
  return /^\s|[\s\\]$/.test(content) || /\d/.test(text[end + 1] ?? "") ? undefined : end + 1;
}

/** Returns the next index of a text from a position that does not decrease; -1 if there is none. */
function next(text: string, sought: string): (from: number) => number {
  let found = -2;
  return (from) => {
    if (found !== -1 && found < from) found = text.indexOf(sought, from);
    return found;
  };
}
