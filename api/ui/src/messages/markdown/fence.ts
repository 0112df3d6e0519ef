// Code between fences: lines of backticks or tildes, of which the second is at least as long as the first.

/** What follows a fence of backticks has none, or it would be code in a line. */
const FENCE = /^ {0,3}(`{3,}(?!`)(?!.*`)|~{3,})/;

/** The signs of a line that begins code. */
export function fenceIn(line: string): string | undefined {
  return FENCE.exec(line)?.[1];
}

/** Whether the line ends the code that such a fence has begun. */
export function ends(line: string, fence: string): boolean {
  const signs = line.trim();
  return signs[0] === fence[0] && signs.length >= fence.length && fenceIn(line) === signs;
}

export type FencedCode = { language?: string; code: string; isOpen: boolean };

/** The code of a block that is nothing else. It may still be growing: then it has no second fence. */
export function codeIn(block: string): FencedCode | undefined {
  const fence = fenceIn(block.split("\n", 1)[0]!);
  // What is indented loses as much in each of its lines, and that is markdown's to know.
  if (!fence || block[0] !== fence[0]) return undefined;
  const [first = "", ...lines] = block.replaceAll("\r\n", "\n").split("\n");
  const end = lines.findIndex((line) => ends(line, fence));
  if (end >= 0 && end < lines.length - 1) return undefined;
  const [word = ""] = first.slice(fence.length).trim().split(/\s/, 1);
  const language = /^[\w+#.-]{1,40}$/.test(word) ? word : undefined;
  return { language, code: (end < 0 ? lines : lines.slice(0, end)).join("\n"), isOpen: end < 0 };
}
