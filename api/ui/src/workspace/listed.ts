// A list of the workspace has read these items so far, newest first. This file merges pages and changes into it.

export interface Listed<T extends { id: string }> {
  items: readonly T[];
  /** The cursor of the next page; null after the last one, and undefined before the first one. */
  next: string | null | undefined;
}

export type Change<T extends { id: string }> = (listed: Listed<T>) => Listed<T>;

export const unread: { items: []; next: undefined } = { items: [], next: undefined };

/** Appends the next page. An item of it may be in the list already, because a change has moved it there. */
export function withNext<T extends { id: string }>(listed: Listed<T>, page: { items: readonly T[]; next: string | null }): Listed<T> {
  const known = new Set(listed.items.map(({ id }) => id));
  const added = page.items.filter(({ id }) => !known.has(id));
  return { items: added.length > 0 ? [...listed.items, ...added] : listed.items, next: page.next };
}

/** Puts a newly read first page in place of the items that it covers, and keeps the older ones. */
export function withFirst<T extends { id: string }>(listed: Listed<T>, page: { items: readonly T[]; next: string | null }): Listed<T> {
  const last = page.items.at(-1);
  if (page.next === null || !last) return page;
  // The ids of entities grow with their time of creation.
  const rest = listed.items.filter(({ id }) => id < last.id);
  // A change may have brought an older item before the first page.
  return rest.length > 0 ? { items: [...page.items, ...rest], next: listed.next === undefined ? page.next : listed.next } : page;
}

/** Replaces an item, or inserts it at its place. */
export function withItem<T extends { id: string }>(listed: Listed<T>, item: T): Listed<T> {
  if (listed.items.some(({ id }) => id === item.id)) return { ...listed, items: listed.items.map((other) => (other.id === item.id ? item : other)) };
  const at = listed.items.findIndex(({ id }) => id < item.id);
  const place = at < 0 ? listed.items.length : at;
  return { ...listed, items: [...listed.items.slice(0, place), item, ...listed.items.slice(place)] };
}

export function without<T extends { id: string }>(listed: Listed<T>, id: string): Listed<T> {
  return listed.items.some((item) => item.id === id) ? { ...listed, items: listed.items.filter((item) => item.id !== id) } : listed;
}
