// Fences enclose code: they are lines of backticks or tildes, and the second is at least as long as the first.

/** No backtick follows a fence of backticks on its line, or the line would be inline code. */
const FENCE = /^ {0,3}(`{3,}(?!`)(?!.*`)|~{3,})/;

/** Returns the fence that begins a line, if it has one. */
export function fenceIn(line: string): string | undefined {
  return FENCE.exec(line)?.[1];
}

/** Whether the line ends the code that this fence has opened. */
export function ends(line: string, fence: string): boolean {
  const signs = line.trim();
  return signs[0] === fence[0] && signs.length >= fence.length && fenceIn(line) === signs;
}

export type FencedCode = { language?: string; code: string; isOpen: boolean };

/** Returns the code of a block that consists only of code. A growing block has no second fence. */
export function codeIn(block: string): FencedCode | undefined {
  const fence = fenceIn(block.split("\n", 1)[0]!);
  // Each line of an indented block loses that indentation, and markdown handles that.
  if (!fence || block[0] !== fence[0]) return undefined;
  const [first = "", ...lines] = block.replaceAll("\r\n", "\n").split("\n");
  const end = lines.findIndex((line) => ends(line, fence));
  if (end >= 0 && end < lines.length - 1) return undefined;
  const [word = ""] = first.slice(fence.length).trim().split(/\s/, 1);
  const language = /^[\w+#.-]{1,40}$/.test(word) ? word : undefined;
  return { language, code: (end < 0 ? lines : lines.slice(0, end)).join("\n"), isOpen: end < 0 };
}
