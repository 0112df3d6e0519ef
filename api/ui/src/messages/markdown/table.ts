// Splits a table into independent parts, so that a new row does not render all of them again.

/** A part has this many rows, which the page renders again during the writing of its last row. */
const ROWS = 30;

/** No other block begins with these characters. A row may omit its first sign. */
const ROW = /^ {0,3}[|\p{L}]/u;

/**
 * Returns the parts, each of which is a table with its own copy of the head. It returns undefined for a block that may
 * not be a table.
 */
export function tableIn(block: string): string[] | undefined {
  if (!block.startsWith("|")) return undefined;
  const [head = "", delimiters = "", ...rows] = block.split("\n");
  if (!/^[-:|\s]+$/.test(delimiters) || !delimiters.includes("-") || cellsOf(head) !== cellsOf(delimiters)) return undefined;
  if (!rows.every((row) => ROW.test(row))) return undefined;
  const parts: string[] = [];
  for (let at = 0; at < Math.max(1, rows.length); at += ROWS) parts.push([head, delimiters, ...rows.slice(at, at + ROWS)].join("\n"));
  return parts;
}

function cellsOf(row: string): number {
  const inner = row.trim();
  const isClosed = inner.length > 1 && inner.endsWith("|") && !inner.endsWith("\\|");
  return inner.slice(1, isClosed ? -1 : undefined).split(/(?<!\\)\|/).length;
}
