// This hook reads the conversations about a project. It reads them again when the list of conversations has another run
// at work, when another tab has sent a message, and when the reader returns.
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useMemo, useState } from "react";

import { chatTabs } from "../../chat/tabs";
import { type Conversation, readConversations } from "../../client/server";
import { type ConversationChange, conversationChanges, withChange } from "../../shell/conversationChanges";
import { Shown } from "../../shown";
import { useShown } from "../../useShown";

/** The reader sees so many more each time. */
const STEP = 20;
/** One read looks at so many pages, each of which looks at 200 conversations. */
const PAGES = 5;

interface Found {
  items: readonly Conversation[];
  hasMore: boolean;
}

export interface ProjectConversations {
  /** Undefined until they are read. */
  found?: Found;
  isFailed: boolean;
  readMore(): void;
  readAgain(): void;
}

/** `live` names the runs at work that the page knows. */
export function useProjectConversations(projectId: string, live: string): ProjectConversations {
  const shown = useMemo(() => new Shown<Found | undefined, ConversationChange>(undefined, conversationChanges, withChanged), [projectId]);
  const found = useShown(shown);
  const [most, setMost] = useState(STEP);
  const [isFailed, setIsFailed] = useState(false);
  const readAgain = useCallback(() => {
    shown.read(() => readSome(projectId, most), (_, read) => read).then(
      () => setIsFailed(false),
      () => setIsFailed(true),
    );
  }, [shown, projectId, most]);
  useEffect(readAgain, [readAgain, live]);
  useEffect(() => {
    const stops = [onWake(readAgain), chatTabs.onNotice(readAgain)];
    return () => stops.forEach((stop) => stop());
  }, [readAgain]);
  return { found, isFailed, readMore: () => setMost((before) => before + STEP), readAgain };
}

function withChanged(found: Found | undefined, change: ConversationChange): Found | undefined {
  return found && { ...found, items: withChange(found.items, change) };
}

async function readSome(projectId: string, most: number): Promise<Found> {
  const items: Conversation[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const read = await readConversations({ project_id: projectId, cursor, limit: most - items.length });
    items.push(...read.items);
    if (read.next === null) return { items, hasMore: false };
    if (items.length >= most) break;
    cursor = read.next;
  }
  return { items, hasMore: true };
}
