// The changes of conversations that this page makes: all of its parts show them at once.
import { Changes } from "../changes";
import type { Conversation } from "../client/server";

export interface ConversationChange {
  id: string;
  fields: Partial<Pick<Conversation, "title" | "knowledge">>;
}

export const conversationChanges = new Changes<ConversationChange>();

export function withChange(conversation: Conversation, { id, fields }: ConversationChange): Conversation {
  return conversation.id === id ? { ...conversation, ...fields } : conversation;
}
