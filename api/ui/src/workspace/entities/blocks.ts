// A long list has blocks of rows.

/** About as many rows as a screen has. */
const ROWS = 20;

export function blocksOf<T>(items: readonly T[]): T[][] {
  const blocks: T[][] = [];
  for (let at = 0; at < items.length; at += ROWS) blocks.push(items.slice(at, at + ROWS));
  return blocks;
}

export function isSameBlock<T>(before: readonly T[], after: readonly T[]): boolean {
  return before.length === after.length && before.every((item, index) => item === after[index]);
}
