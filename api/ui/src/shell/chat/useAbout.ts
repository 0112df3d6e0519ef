// This hook reads the facts of the open conversation beside its messages, and whether it exists.
import { Problem } from "holdfast-client/problem";
import { useEffect, useMemo } from "react";

import { readConversation, type Conversation } from "../../client/server";
import { Shown } from "../../shown";
import { useShown } from "../../useShown";
import { type ConversationChange, conversationChanges, withChange } from "../conversationChanges";

/** `null` means that the conversation does not exist. */
type Known = Conversation | null | undefined;

/** Asks the server for a conversation that the list does not have, such as that of a link. */
export function useAbout(id: string | undefined, listed: Conversation | undefined): { about?: Conversation; isMissing: boolean } {
  const shown = useMemo(() => new Shown<Known, ConversationChange>(undefined, conversationChanges, (known, change) => known && withChange(known, change)), [id]);
  const known = useShown(shown);
  const isListed = listed !== undefined;
  useEffect(() => {
    if (id === undefined || isListed) return;
    // The read of the messages reports a failure.
    shown.read(() => readIfThere(id), (_, read) => read).catch(() => {});
  }, [shown, id, isListed]);
  return { about: listed ?? known ?? undefined, isMissing: !isListed && known === null };
}

async function readIfThere(id: string): Promise<Known> {
  try {
    return await readConversation(id);
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}
