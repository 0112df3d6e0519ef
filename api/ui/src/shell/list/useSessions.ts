// This hook reads the names of the sessions, by their conversations. Programs give these names; the page only shows
// them.
import { useEffect } from "react";

import { readSessions } from "../../client/server";
import { useRead } from "../useRead";

const read = async () => new Map((await readSessions({ limit: 200 })).items.map(({ conversation_id, session_id }) => [conversation_id, session_id]));

/** `count` is the number of listed conversations: each new one may have a new name. */
export function useSessions(isAllowed: boolean, count: number): ReadonlyMap<string, string> {
  const [names, readAgain] = useRead(isAllowed, read);
  useEffect(readAgain, [readAgain, count]);
  return names ?? new Map();
}
