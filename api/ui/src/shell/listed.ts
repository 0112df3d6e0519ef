// The conversations that the list has read so far, and what becomes of them when it is read again.
import type { Conversation } from "../client/server";

export type Listed = { items: Conversation[]; next: string | null };

/** When something was last said there; what the server sorts by. */
export function activityOf(conversation: Conversation): string {
  return conversation.last_message_at ?? conversation.created_at;
}

/** The first page, read again, before what was read of the pages behind it. */
export function withFirstPage(listed: Listed, first: Listed): Listed {
  const last = first.items.at(-1);
  if (first.next === null || !last || listed.items.length === 0) return first;
  // What is as new as the first page and is not on it any more was deleted, or does not match.
  const rest = listed.items.filter((item) => activityOf(item) < activityOf(last) && !has(first.items, item.id));
  return rest.length > 0 ? { items: [...first.items, ...rest], next: listed.next } : first;
}

export function withNextPage(listed: Listed, page: Listed): Listed {
  return { items: [...listed.items, ...page.items.filter((item) => !has(listed.items, item.id))], next: page.next };
}

export function withTitle(listed: Listed, id: string, title: string | null): Listed {
  return { ...listed, items: listed.items.map((item) => (item.id === id ? { ...item, title } : item)) };
}

/** The one before or behind `id`; without it, the first. */
export function neighbour(items: Conversation[], id: string | undefined, step: 1 | -1): Conversation | undefined {
  const at = items.findIndex((item) => item.id === id);
  return at < 0 ? items[0] : items[at + step];
}

function has(items: Conversation[], id: string): boolean {
  return items.some((item) => item.id === id);
}
