// A list of the workspace has read these items so far, in the order of the server. This file merges pages and changes
// into it.

export interface Listed<T extends { id: string }> {
  items: readonly T[];
  /** The cursor of the next page; null after the last one, and undefined before the first one. */
  next: string | null | undefined;
}

export type Change<T extends { id: string }> = (listed: Listed<T>) => Listed<T>;

/** Compares two items of a list as `toSorted` has it. */
export type Compare<T> = (one: T, other: T) => number;

/** The ids of entities grow with their time of creation. */
export const newestFirst: Compare<{ id: string }> = ({ id }, other) => (id > other.id ? -1 : id < other.id ? 1 : 0);

export const unread: { items: []; next: undefined } = { items: [], next: undefined };

type Page<T> = { items: readonly T[]; next: string | null };

/** Appends the next page. A change may have put an item of it into the list before, or an item that comes after it. */
export function withNext<T extends { id: string }>(listed: Listed<T>, page: Page<T>, compare?: Compare<T>): Listed<T> {
  const known = new Set(listed.items.map(({ id }) => id));
  const added = page.items.filter(({ id }) => !known.has(id));
  const items = added.length > 0 ? [...listed.items, ...added] : listed.items;
  return { items: compare ? items.toSorted(compare) : items, next: page.next };
}

/** Puts a newly read first page in place of the items that it covers, and keeps the later ones. */
export function withFirst<T extends { id: string }>(listed: Listed<T>, page: Page<T>, compare: Compare<T> = newestFirst): Listed<T> {
  const last = page.items.at(-1);
  if (page.next === null || !last) return page;
  const covered = new Set(page.items.map(({ id }) => id));
  const rest = listed.items.filter((item) => !covered.has(item.id) && compare(item, last) > 0);
  // A change may have brought a later item before the first page.
  return rest.length > 0 ? { items: [...page.items, ...rest], next: listed.next === undefined ? page.next : listed.next } : page;
}

/** Replaces an item, or inserts it at its place. With `compare`, a change may move it. */
export function withItem<T extends { id: string }>(listed: Listed<T>, item: T, compare?: Compare<T>): Listed<T> {
  const at = listed.items.findIndex(({ id }) => id === item.id);
  const isThere = at >= 0;
  if (isThere && (!compare || isInPlace(listed.items, at, item, compare))) return { ...listed, items: listed.items.with(at, item) };
  const others = isThere ? listed.items.toSpliced(at, 1) : listed.items;
  const place = others.findIndex((other) => (compare ?? newestFirst)(other, item) > 0);
  return { ...listed, items: others.toSpliced(place < 0 ? others.length : place, 0, item) };
}

function isInPlace<T>(items: readonly T[], at: number, item: T, compare: Compare<T>): boolean {
  const [before, after] = [items[at - 1], items[at + 1]];
  return (before === undefined || compare(before, item) <= 0) && (after === undefined || compare(item, after) <= 0);
}

export function without<T extends { id: string }>(listed: Listed<T>, id: string): Listed<T> {
  return listed.items.some((item) => item.id === id) ? { ...listed, items: listed.items.filter((item) => item.id !== id) } : listed;
}
