// The list's conversations: read page by page, searched, and read again when something may have changed.
import { useCallback, useEffect, useRef, useState } from "react";

import { chatTabs } from "../chat/tabs";
import { readConversations, renameConversation, type Conversation } from "../client/server";
import { onWake } from "../client/wake";
import { words } from "../i18n";
import { withFirstPage, withNextPage, withTitle, type Listed } from "./listed";
import { showToast } from "./toasts";

const SEARCH_AFTER_MS = 250;
/** How often the list is read while an answer is being made somewhere. */
const LIVE_AGAIN_MS = 5_000;

export interface Conversations {
  items: Listed["items"];
  /** What `items` are the findings of; empty for all. */
  found: string;
  query: string;
  search(query: string): void;
  progress: "loading" | "idle" | "failed";
  hasMore: boolean;
  readMore(): void;
  readAgain(): void;
  /** An empty title takes it away. */
  rename(conversation: Conversation, title: string): Promise<void>;
}

export function useConversations(isAllowed: boolean): Conversations {
  const [query, search] = useState("");
  const [found, setFound] = useState("");
  const [listed, setListed] = useState<Listed>({ items: [], next: null });
  const [progress, setProgress] = useState<Conversations["progress"]>("loading");
  /** Counts the readings, so that an answer that comes late does not overwrite a newer one. */
  const reading = useRef(0);
  const isReadingMore = useRef(false);

  const readFirst = useCallback(async (q: string, isNewQuery: boolean) => {
    const mine = ++reading.current;
    try {
      const page = await readConversations({ q });
      if (mine !== reading.current) return;
      setListed((before) => (isNewQuery ? page : withFirstPage(before, page)));
      setFound(q);
      setProgress("idle");
    } catch {
      if (mine === reading.current) setProgress("failed");
    }
  }, []);

  const trimmed = query.trim();
  useEffect(() => {
    if (!isAllowed) return;
    const timer = setTimeout(() => void readFirst(trimmed, true), trimmed === "" ? 0 : SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isAllowed, trimmed, readFirst]);

  const readAgain = useCallback(() => {
    if (isAllowed) void readFirst(trimmed, false);
  }, [isAllowed, trimmed, readFirst]);

  useEffect(() => onWake(readAgain), [readAgain]);
  useEffect(() => chatTabs.onTold(readAgain), [readAgain]);

  const isAnyLive = listed.items.some((item) => item.live_run_id !== null);
  useEffect(() => {
    if (!isAnyLive) return;
    const timer = setInterval(() => document.visibilityState === "visible" && readAgain(), LIVE_AGAIN_MS);
    return () => clearInterval(timer);
  }, [isAnyLive, readAgain]);

  const readMore = useCallback(() => {
    if (listed.next === null || isReadingMore.current) return;
    isReadingMore.current = true;
    const mine = reading.current;
    readConversations({ q: found, cursor: listed.next })
      .then((page) => mine === reading.current && setListed((before) => withNextPage(before, page)))
      .catch(() => setProgress("failed"))
      .finally(() => (isReadingMore.current = false));
  }, [listed.next, found]);

  const rename = useCallback(async ({ id, title: before }: Conversation, title: string) => {
    const after = title.trim() === "" ? null : title.trim();
    if (after === before) return;
    setListed((now) => withTitle(now, id, after));
    try {
      await renameConversation(id, after);
    } catch {
      setListed((now) => withTitle(now, id, before));
      showToast(words.shell.list.notRenamed);
    }
  }, []);

  return { items: listed.items, found, query, search, progress, hasMore: listed.next !== null, readMore, readAgain, rename };
}
