// Splits an answer's markdown into independent blocks, so that new text renders one block and not the whole answer. It
// cuts at a blank line outside of everything that spans blank lines, and around code.
import { ends, fenceIn } from "./fence";

const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:\s*\S/m;

/**
 * Above this length the splitter cuts a list between its items too: as one block it would cost as much as an uncut
 * answer.
 */
const LONG_LIST = 4_000;

/** Returns the blocks in order; joined with blank lines they are the text again. */
export function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let block: string[] = [];
  let length = 0;
  let fence: string | undefined;
  let isMath = false;
  let isList = false;
  let isAfterBlank = false;

  const cut = () => {
    while (block.at(-1)?.trim() === "") block.pop();
    if (block.length > 0) blocks.push(block.join("\n"));
    block = [];
    length = 0;
  };

  for (const line of text.split("\n")) {
    const isBlank = line.trim() === "";
    const opening = fence === undefined && !isMath ? fenceIn(line) : undefined;
    // An indented fence may belong to a list item.
    if (opening && line[0] === opening[0]) cut();
    else if (!isBlank && fence === undefined && !isMath && isNew(line, { isAfterBlank, isList, length })) cut();
    if (block.length === 0) {
      if (isBlank) continue;
      isList = LIST_ITEM.test(line);
    }
    block.push(line);
    length += line.length + 1;
    isAfterBlank = isBlank;

    if (opening) fence = opening;
    else if (fence === undefined) isMath = isMathBehind(line, isMath);
    else if (ends(line, fence)) {
      fence = undefined;
      if (fenceIn(block[0]!) && line[0] !== " ") cut();
    }
  }
  cut();
  return blocks;
}

/** Whether a line begins a new block. An indented line does not, and neither does an item of a short list. */
function isNew(line: string, { isAfterBlank, isList, length }: { isAfterBlank: boolean; isList: boolean; length: number }): boolean {
  if (/^\s/.test(line)) return false;
  if (isList && LIST_ITEM.test(line)) return length >= LONG_LIST;
  return isAfterBlank;
}

/** Whether a formula on separate lines is open after this line. */
function isMathBehind(line: string, isOpen: boolean): boolean {
  const content = line.trim();
  if (content === "$$") return !isOpen;
  if (content === "\\[") return true;
  if (content === "\\]") return false;
  return isOpen;
}

/** Whether the text refers to something that another block may define: footnotes, links by reference. */
export function hasDefinitions(text: string): boolean {
  return DEFINITION.test(text);
}

/**
 * Returns the text without an ambiguous last line. `-`, for example, may become a list, a rule or the underline of a
 * heading, and the reader should not see it change.
 */
export function withoutDangling(text: string): string {
  return text.replace(/\n[ \t]*(?:[-*+>#=_|]+|`{1,2}|~{1,2}|\d{1,9}[.)]?)[ \t]*$/, "");
}

/** Returns the text without the beginning of a mark such as `[1]` at its end, which would change into a mark. */
export function withoutHalfMark(text: string): string {
  return text.replace(/\[\d{0,3}$/, "");
}
