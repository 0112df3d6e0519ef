// The list has read these conversations so far; this file merges newly read pages into them.
import type { Conversation } from "../../client/server";
import { type ConversationChange, withChange } from "../conversationChanges";

export type Listed = { items: Conversation[]; next: string | null };

/** Returns the time of the newest message, by which the server sorts. */
export function activityOf(conversation: Conversation): string {
  return conversation.last_message_at ?? conversation.created_at;
}

/** Returns the message to which a search leads. */
export function placeOf({ found }: Conversation): string | undefined {
  return found ? (found.client_id ?? found.message_id) : undefined;
}

/** Puts the newly read first page before the later pages. */
export function withFirstPage(listed: Listed, first: Listed): Listed {
  const last = first.items.at(-1);
  if (first.next === null || !last || listed.items.length === 0) return first;
  // If a conversation as new as the first page is no longer on it, a reader has deleted it, or it does not match.
  const rest = listed.items.filter((item) => activityOf(item) < activityOf(last) && !has(first.items, item.id));
  return rest.length > 0 ? { items: [...first.items, ...rest], next: listed.next } : first;
}

export function withNextPage(listed: Listed, page: Listed): Listed {
  return { items: [...listed.items, ...page.items.filter((item) => !has(listed.items, item.id))], next: page.next };
}

export function withChanged(listed: Listed, change: ConversationChange): Listed {
  return has(listed.items, change.id) ? { ...listed, items: withChange(listed.items, change) } : listed;
}

/** Returns the conversation before or after `id`; without `id`, the first. */
export function neighbour(items: Conversation[], id: string | undefined, step: 1 | -1): Conversation | undefined {
  const at = items.findIndex((item) => item.id === id);
  return at < 0 ? items[0] : items[at + step];
}

function has(items: Conversation[], id: string): boolean {
  return items.some((item) => item.id === id);
}
