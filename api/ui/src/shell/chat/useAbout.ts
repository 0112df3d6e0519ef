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
  const shown = useMemo(() => new Shown<Known, ConversationChange>(undefined, conversationChanges, (known, change) => after(known, id, change)), [id]);
  const known = useShown(shown);
  const isListed = listed !== undefined;
  useEffect(() => {
    // A tab has deleted it; the server may learn that later.
    if (id === undefined || isListed || shown.value === null) return;
    // The read of the messages reports a failure.
    shown.read(() => readIfThere(id), (_, read) => read).catch(() => {});
  }, [shown, id, isListed]);
  return { about: listed ?? known ?? undefined, isMissing: !isListed && known === null };
}

function after(known: Known, id: string | undefined, change: ConversationChange): Known {
  if (change.isDeleted && change.id === id) return null;
  return known && withChange([known], change)[0];
}

async function readIfThere(id: string): Promise<Known> {
  try {
    return await readConversation(id);
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
  }
}
