// This hook reads the conversations whose runs wait for the reader, also those that the list has not read.
import { useEffect, useState } from "react";

import { readConversation, readRuns, type Conversation } from "../../client/server";
import { Shown } from "../../shown";
import { useShown } from "../../useShown";
import { type ConversationChange, conversationChanges, withChange } from "../conversationChanges";

/** The server may have more; this many cards are enough at first. */
const MOST = 50;

/** Returns the ids, newest run first. After a failed read it returns none. */
export async function readWaiting(): Promise<ReadonlySet<string>> {
  const runs = await readRuns({ status: "waiting", limit: MOST }).catch(() => undefined);
  return new Set(runs?.items.map((run) => run.conversation_id));
}

/** Returns the conversations of these ids. It asks the server for unlisted ones, and only if `isWanted`. */
export function useConversationsOf(ids: ReadonlySet<string>, listed: Conversation[], isWanted: boolean): Conversation[] {
  const [shown] = useState(() => new Shown<Conversation[], ConversationChange>([], conversationChanges, withChange));
  const read = useShown(shown);
  const known = new Map([...read, ...listed].map((conversation) => [conversation.id, conversation]));
  const missing = isWanted ? [...ids].filter((id) => !known.has(id)).join() : "";
  useEffect(() => {
    if (missing === "") return;
    void shown.readMore(
      () => Promise.allSettled(missing.split(",").map(readConversation)),
      (before, answers) => [...before, ...answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []))],
    );
  }, [shown, missing]);
  return [...ids].flatMap((id) => known.get(id) ?? []);
}
