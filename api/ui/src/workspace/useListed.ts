// This hook reads a list of the workspace page by page, and its first page again each time that the reader returns.
import { onWake } from "holdfast-client/wake";
import { startTransition, useCallback, useEffect, useRef, useState } from "react";

import type { Page } from "../client/server";
import { type Change, type Listed, unread, withChanges, withFirst, withNext } from "./listed";
import { onUndone } from "./news";

export interface Reading<T extends { id: string }> extends Listed<T> {
  progress: "loading" | "idle" | "failed";
  readMore(): void;
  readAgain(): void;
  /** Shows a change before the next read. */
  change(how: Change<T>): void;
}

/** A new `read` function, which a component makes with `useCallback`, is another list. Without one, nothing is read. */
export function useListed<T extends { id: string }>(read: ((cursor: string | undefined) => Promise<Page<T>>) | undefined): Reading<T> {
  const [listed, setListed] = useState<Listed<T>>(unread);
  const [isFailed, setIsFailed] = useState(false);
  /** Counts the lists: a page of an earlier one arrives too late. */
  const list = useRef(0);
  const isReading = useRef(false);
  /** The changes that this list has shown: a page that was read before one of them does not have it. */
  const changes = useRef<Change<T>[]>([]);
  const change = useCallback((how: Change<T>) => {
    changes.current.push(how);
    setListed(how);
  }, []);

  const readFirst = useCallback(async () => {
    if (!read) return;
    const mine = list.current;
    const shown = changes.current.length;
    try {
      const page = await read(undefined);
      if (mine !== list.current) return;
      setIsFailed(false);
      const later = changes.current.slice(shown);
      startTransition(() => setListed((before) => withChanges(withFirst(before, page), later)));
    } catch {
      if (mine === list.current) setIsFailed(true);
    }
  }, [read]);

  useEffect(() => {
    list.current += 1;
    isReading.current = false;
    changes.current = [];
    setListed(unread);
    void readFirst();
    const stops = [
      onWake(() => void readFirst()),
      // Older items may have changed, too, so the list begins again.
      onUndone(() => {
        list.current += 1;
        changes.current = [];
        setListed(unread);
        void readFirst();
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }, [readFirst]);

  const readMore = useCallback(() => {
    if (!read || isReading.current || !listed.next) return;
    isReading.current = true;
    const mine = list.current;
    const shown = changes.current.length;
    read(listed.next)
      .then(
        (page) => {
          if (mine !== list.current) return;
          setIsFailed(false);
          // A transition is interruptible, so that new rows do not hold up a reader's scrolling.
          const later = changes.current.slice(shown);
          startTransition(() => setListed((before) => withChanges(withNext(before, page), later)));
        },
        () => mine === list.current && setIsFailed(true),
      )
      .finally(() => {
        if (mine === list.current) isReading.current = false;
      });
  }, [read, listed.next]);

  const progress = isFailed ? "failed" : read && listed.next === undefined ? "loading" : "idle";
  return { ...listed, progress, readMore, readAgain: readFirst, change };
}
