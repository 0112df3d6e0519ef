// Cuts a table into parts that can be drawn on their own, so that a new row does not redraw all of them.

/** So many rows are drawn again while the last of them is written. */
const ROWS = 30;

/** What nothing else begins with. A row may do without its first sign. */
const ROW = /^ {0,3}[|\p{L}]/u;

/** The parts, each of which is a table with the same head; undefined for a block that may be anything else. */
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
