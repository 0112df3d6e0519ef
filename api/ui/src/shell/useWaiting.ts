// The conversations whose runs wait for the reader, also those that the list has not read.
import { useEffect, useState } from "react";

import { readConversation, readRuns, type Conversation } from "../client/server";

/** The server may have more; so many cards are enough to begin with. */
const MOST = 50;

/** The ids, newest run first. Where they cannot be had, there are none to tell of. */
export async function readWaiting(): Promise<ReadonlySet<string>> {
  const runs = await readRuns({ status: "waiting", limit: MOST }).catch(() => undefined);
  return new Set(runs?.items.map((run) => run.conversation_id));
}

/** The conversations of these ids. The server is asked for those that are not listed, and only when they are wanted. */
export function useConversationsOf(ids: ReadonlySet<string>, listed: Conversation[], isWanted: boolean): Conversation[] {
  const [read, setRead] = useState<Conversation[]>([]);
  const known = new Map([...read, ...listed].map((conversation) => [conversation.id, conversation]));
  const missing = isWanted ? [...ids].filter((id) => !known.has(id)).join() : "";
  useEffect(() => {
    if (missing === "") return;
    let isOver = false;
    void Promise.allSettled(missing.split(",").map(readConversation)).then((answers) => {
      const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
      if (!isOver && found.length > 0) setRead((before) => [...before, ...found]);
    });
    return () => {
      isOver = true;
    };
  }, [missing]);
  return [...ids].flatMap((id) => known.get(id) ?? []);
}
