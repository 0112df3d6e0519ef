// This hook reads the list's conversations page by page, searches them, and reads them again after a possible change.
import { Problem } from "holdfast-client/problem";
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useRef, useState } from "react";

import { chatTabs } from "../../chat/tabs";
import { readConversations } from "../../client/server";
import { Shown } from "../../shown";
import { useShown } from "../../useShown";
import { type ConversationChange, conversationChanges, tellDeleted } from "../conversationChanges";
import { withChanged, withFirstPage, withNextPage, type Listed } from "./listed";
import { type Renaming, useRenaming } from "./useRenaming";
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

export interface Conversations extends Renaming {
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
}

/** The reads of the list have brought this. */
interface Read {
  listed: Listed;
  found: string;
  waiting: ReadonlySet<string>;
  isRead: boolean;
}

const unread: Read = { listed: { items: [], next: null }, found: "", waiting: new Set(), isRead: false };

export function useConversations(isAllowed: boolean): Conversations {
  const [query, search] = useState("");
  const [shown] = useState(() => new Shown<Read, ConversationChange>(unread, conversationChanges, (read, change) => ({ ...read, listed: withChanged(read.listed, change) })));
  const { listed, found, waiting, isRead } = useShown(shown);
  const { unsaved, rename } = useRenaming();
  /** The number of consecutive failed reads. */
  const [failures, setFailures] = useState(0);
  const isReadingMore = useRef(false);

  const readFirst = useCallback(
    async (q: string, isNewQuery: boolean) => {
      const ask = () => Promise.all([readConversations({ q }), readWaiting()]);
      try {
        await shown.read(ask, (before, [page, ids]) => ({
          listed: isNewQuery ? page : withFirstPage(before.listed, page),
          found: q,
          waiting: sameIds(before.waiting, ids) ? before.waiting : ids,
          isRead: true,
        }));
        setFailures(0);
      } catch (error) {
        setFailures(oneMore(error));
      }
    },
    [shown],
  );

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
  // The server may still have what another tab deletes while its reader leaves, so the list does not read again then.
  useEffect(() => chatTabs.onNotice(({ ids, isDeleted }) => (isDeleted ? ids.forEach(tellDeleted) : readAgain())), [readAgain]);

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
    const cursor = listed.next;
    if (cursor === null || isReadingMore.current) return;
    isReadingMore.current = true;
    // A list that begins again meanwhile has another next page.
    const land = (before: Read, page: Listed) => (before.listed.next === cursor ? { ...before, listed: withNextPage(before.listed, page) } : before);
    shown
      .readMore(() => readConversations({ q: found, cursor }), land)
      .catch((error: unknown) => setFailures(oneMore(error)))
      .finally(() => (isReadingMore.current = false));
    // It depends on `failures`: a list that failed to read more tries again when the server is back.
  }, [shown, listed.next, found, failures]);

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
