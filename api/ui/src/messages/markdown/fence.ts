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

/** Code that is still being written: a text that begins with a fence and has no other. */
export function openCodeIn(text: string): { language?: string; code: string } | undefined {
  const [first = "", ...lines] = text.split("\n");
  const fence = fenceIn(first);
  // What is indented loses as much in each of its lines, and that is markdown's to know.
  if (!fence || first[0] !== fence[0] || lines.some((line) => ends(line, fence))) return undefined;
  const language = /^[\w+#.-]{1,40}/.exec(first.slice(fence.length).trim())?.[0];
  return { language, code: lines.join("\n") };
}
