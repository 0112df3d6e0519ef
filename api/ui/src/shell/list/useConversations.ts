// This hook reads the list's conversations page by page, searches them, and reads them again after a possible change.
import { Problem } from "holdfast-client/problem";
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useRef, useState } from "react";

import { chatTabs } from "../../chat/tabs";
import { readConversations, renameConversation, type Conversation } from "../../client/server";
import { words } from "../../i18n";
import { withFirstPage, withNextPage, withTitle, type Listed } from "./listed";
import { showToast } from "../controls/toasts";
import { readWaiting } from "./useWaiting";

const SEARCH_AFTER_MS = 250;
/** The list's poll interval while any run answers. */
const LIVE_AGAIN_MS = 5_000;
/** The poll interval of a page in the background, whose title counts the waiting runs. */
const UNSEEN_AGAIN_MS = 15_000;
/** An outage passes, and the chat reports it; the list reports it only after this many failures. */
const TOLD_AFTER = 3;
const AGAIN_AFTER_MS = 2_000;
const AGAIN_AT_MOST_MS = 15_000;
const NOT_RENAMED_FOR_MS = 8_000;

export interface Conversations {
  items: Listed["items"];
  /** The search text that `items` match; empty for all. */
  found: string;
  /** The ids of conversations that wait for the reader, independent of the search. */
  waiting: ReadonlySet<string>;
  query: string;
  search(query: string): void;
  progress: "loading" | "idle" | "failed";
  /** Whether the last request failed to reach the server. */
  isAway: boolean;
  hasMore: boolean;
  readMore(): void;
  readAgain(): void;
  /** The titles that the reader has typed and the server does not have, by conversation. */
  unsaved: ReadonlyMap<string, string>;
  /** An empty title removes the title. */
  rename(conversation: Conversation, title: string): Promise<void>;
}

export function useConversations(isAllowed: boolean): Conversations {
  const [query, search] = useState("");
  const [found, setFound] = useState("");
  const [listed, setListed] = useState<Listed>({ items: [], next: null });
  const [unsaved, setUnsaved] = useState<ReadonlyMap<string, string>>(new Map());
  const [waiting, setWaiting] = useState<ReadonlySet<string>>(new Set());
  const [isRead, setIsRead] = useState(false);
  /** The number of consecutive failed reads. */
  const [failures, setFailures] = useState(0);
  /** This counter of reads keeps a late response from overwriting a newer one. */
  const reading = useRef(0);
  const isReadingMore = useRef(false);

  const readFirst = useCallback(async (q: string, isNewQuery: boolean) => {
    const mine = ++reading.current;
    try {
      const [page, ids] = await Promise.all([readConversations({ q }), readWaiting()]);
      if (mine !== reading.current) return;
      setWaiting((before) => (sameIds(before, ids) ? before : ids));
      setListed((before) => (isNewQuery ? page : withFirstPage(before, page)));
      setFound(q);
      setIsRead(true);
      setFailures(0);
    } catch (error) {
      if (mine === reading.current) setFailures(oneMore(error));
    }
  }, []);

  const trimmed = query.trim();
  useEffect(() => {
    if (!isAllowed) return;
    const timer = setTimeout(() => void readFirst(trimmed, true), trimmed === "" ? 0 : SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isAllowed, trimmed, readFirst]);

  useEffect(() => {
    if (!isAllowed || failures === 0) return;
    const timer = setTimeout(() => void readFirst(trimmed, trimmed !== found), Math.min(failures * AGAIN_AFTER_MS, AGAIN_AT_MOST_MS));
    return () => clearTimeout(timer);
  }, [isAllowed, failures, trimmed, found, readFirst]);

  const readAgain = useCallback(() => {
    if (isAllowed) void readFirst(trimmed, false);
  }, [isAllowed, trimmed, readFirst]);

  useEffect(() => onWake(readAgain), [readAgain]);
  useEffect(() => chatTabs.onNotice(readAgain), [readAgain]);

  const isAnyLive = waiting.size > 0 || listed.items.some((item) => item.live_run_id !== null);
  useEffect(() => {
    if (!isAnyLive) return;
    let readAt = Date.now();
    const timer = setInterval(() => {
      const isDue = document.visibilityState === "visible" || Date.now() - readAt >= UNSEEN_AGAIN_MS;
      if (!isDue) return;
      readAt = Date.now();
      readAgain();
    }, LIVE_AGAIN_MS);
    return () => clearInterval(timer);
  }, [isAnyLive, readAgain]);

  const readMore = useCallback(() => {
    if (listed.next === null || isReadingMore.current) return;
    isReadingMore.current = true;
    const mine = reading.current;
    readConversations({ q: found, cursor: listed.next })
      .then((page) => mine === reading.current && setListed((before) => withNextPage(before, page)))
      .catch((error: unknown) => setFailures(oneMore(error)))
      .finally(() => (isReadingMore.current = false));
    // It depends on `failures`: a list that failed to read more tries again when the server is back.
  }, [listed.next, found, failures]);

  const rename = useCallback(async (conversation: Conversation, title: string): Promise<void> => {
    const { id, title: before } = conversation;
    const after = title.trim() === "" ? null : title.trim();
    setUnsaved((now) => new Map([...now].filter(([other]) => other !== id)));
    if (after === before) return;
    setListed((now) => withTitle(now, id, after));
    try {
      await renameConversation(id, after);
    } catch {
      setListed((now) => withTitle(now, id, before));
      setUnsaved((now) => new Map(now).set(id, title));
      showToast(words.shell.list.notRenamed, { label: words.shell.retry, run: () => void rename(conversation, title) }, NOT_RENAMED_FOR_MS);
    }
  }, []);

  const progress = failures >= TOLD_AFTER ? "failed" : isRead ? "idle" : "loading";
  return { items: listed.items, unsaved, waiting, found, query, search, progress, hasMore: listed.next !== null, readMore, readAgain, rename, isAway: failures > 0 };
}

function sameIds(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((id) => other.has(id));
}

/** The page asks a refused reader to sign in: a refusal is no failure of the list. */
function oneMore(error: unknown): (failures: number) => number {
  return (failures) => (error instanceof Problem && error.status === 401 ? failures : failures + 1);
}
