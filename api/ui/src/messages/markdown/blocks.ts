// Cuts an answer's markdown into blocks that can be drawn on their own, so that a piece of text redraws one block and not
// the whole answer. A cut is at a blank line that is outside of everything that reaches over blank lines, and around code.
import { ends, fenceIn } from "./fence";

const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]\n]+\]:\s*\S/m;

/** From here on a list is cut between its items too: one block of it would cost as much as an answer that is not cut. */
const LONG_LIST = 4_000;

/** The blocks, in order; joined with blank lines they are the text again. */
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
    const begun = fence === undefined && !isMath ? fenceIn(line) : undefined;
    // An indented fence may be a list item's.
    if (begun && line[0] === begun[0]) cut();
    else if (!isBlank && fence === undefined && !isMath && isNew(line, { isAfterBlank, isList, length })) cut();
    if (block.length === 0) {
      if (isBlank) continue;
      isList = LIST_ITEM.test(line);
    }
    block.push(line);
    length += line.length + 1;
    isAfterBlank = isBlank;

    if (begun) fence = begun;
    else if (fence === undefined) isMath = isMathBehind(line, isMath);
    else if (ends(line, fence)) {
      fence = undefined;
      if (fenceIn(block[0]!) && line[0] !== " ") cut();
    }
  }
  cut();
  return blocks;
}

/** Whether a line begins something new. An indented one does not, and neither does an item of a list that is not long. */
function isNew(line: string, { isAfterBlank, isList, length }: { isAfterBlank: boolean; isList: boolean; length: number }): boolean {
  if (/^\s/.test(line)) return false;
  if (isList && LIST_ITEM.test(line)) return length >= LONG_LIST;
  return isAfterBlank;
}

/** Whether a formula that stands on lines of its own is open behind this line. */
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
 * The text without a last line that is not yet anything: `-` may become a list, a rule or the underline of a heading, and
 * what it becomes should not be seen to change.
 */
export function withoutDangling(text: string): string {
  return text.replace(/\n[ \t]*(?:[-*+>#=_|]+|`{1,2}|~{1,2}|\d{1,9}[.)]?)[ \t]*$/, "");
}
