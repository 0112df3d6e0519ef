// The changes of conversations that this page makes or hears of: all of its parts show them at once.
import { Changes } from "../changes";
import type { Conversation } from "../client/server";

export interface ConversationChange {
  id: string;
  fields?: Partial<Pick<Conversation, "title" | "knowledge">>;
  isDeleted?: boolean;
}

export const conversationChanges = new Changes<ConversationChange>();

export const tellDeleted = (id: string) => conversationChanges.tell({ id, isDeleted: true });

/** Returns the conversations after the change. */
export function withChange<Item extends Conversation>(conversations: readonly Item[], { id, fields, isDeleted }: ConversationChange): Item[] {
  return conversations.flatMap((item) => (item.id !== id ? item : isDeleted ? [] : { ...item, ...fields }));
}
