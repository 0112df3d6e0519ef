// These hooks read a list of the workspace page by page, and its first page again each time that the reader returns.
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { Changes } from "../changes";
import type { Page } from "../client/server";
import { type Entity, type EntityFilter, type EntityKind, readEntities } from "../client/workspace";
import { Shown } from "../shown";
import { useShown } from "../useShown";
import { type Change, type Compare, type Listed, unread, withFirst, withItem, withNext, without } from "./listed";
import { fits, type News, news, onElsewhere, onUndone } from "./news";
import { compareOf, type TaskOrder } from "./taskOrder";

export interface Reading<T extends { id: string }> extends Listed<T> {
  progress: "loading" | "idle" | "failed";
  readMore(): void;
  readAgain(): void;
}

type Read<T> = (cursor: string | undefined) => Promise<Page<T>>;

/** A new `read` function, which a component makes with `useCallback`, is another list. Without one, nothing is read. */
export function useListed<T extends { id: string }>(read: Read<T> | undefined): Reading<T> & { changes: Changes<Change<T>> } {
  const [changes] = useState(() => new Changes<Change<T>>());
  return { ...useReading(read, { changes, apply: changed<T> }), changes };
}

function changed<T extends { id: string }>(listed: Listed<T>, change: Change<T>): Listed<T> {
  return change(listed);
}

type Options = {
  /** A closed list reads nothing. */
  isOpen?: boolean;
  limit?: number;
  /** The order of tasks; other entities have the newest first. */
  order?: TaskOrder;
};

/** Reads the entities that the filter has, and follows the changes of this page. `filter` must stay the same object. */
export function useEntities(kind: EntityKind, filter: EntityFilter, { isOpen = true, limit, order = "newest" }: Options = {}): Reading<Entity> {
  const read = useCallback((cursor: string | undefined) => readEntities(kind, filter, { cursor, limit, order }), [kind, filter, limit, order]);
  const following = useMemo(() => followingOf(kind, filter, compareOf(order)), [kind, filter, order]);
  return useReading(isOpen ? read : undefined, following);
}

/** How a list follows changes. */
interface Following<T extends { id: string }, C> {
  changes: Changes<C>;
  apply(listed: Listed<T>, change: C): Listed<T>;
  /** The order of the list, if it is known. */
  compare?: Compare<T>;
}

function followingOf(kind: EntityKind, filter: EntityFilter, compare: Compare<Entity>): Following<Entity, News> {
  return { changes: news, apply: (listed, change) => withNews(listed, change, { kind, filter, compare }), compare };
}

/** Applies a change to a list with this kind, filter and order. */
export function withNews(listed: Listed<Entity>, { kind, id, after }: News, of: { kind: EntityKind; filter: EntityFilter; compare: Compare<Entity> }): Listed<Entity> {
  if (kind !== of.kind) return listed;
  const entity = after(listed.items.find((item) => item.id === id));
  return entity && fits(entity, of.filter) ? withItem(listed, entity, of.compare) : without(listed, id);
}

function useReading<T extends { id: string }, C>(read: Read<T> | undefined, { changes, apply, compare }: Following<T, C>): Reading<T> {
  const [round, setRound] = useState(0);
  const shown = useMemo(() => new Shown<Listed<T>, C>(unread, changes, apply), [read, changes, apply, round]);
  const listed = useShown(shown, { isLong: true });
  /** The list whose newest read has failed, and the one whose next page is being read. */
  const [failed, setFailed] = useState<unknown>();
  const busy = useRef<unknown>(undefined);
  const followed = useCallback(
    (reading: Promise<void>) =>
      reading.then(
        () => setFailed((before: unknown) => (before === shown ? undefined : before)),
        () => setFailed(shown),
      ),
    [shown],
  );
  const readAgain = useCallback(() => {
    if (read) void followed(shown.read(() => read(undefined), (before, page) => withFirst(before, page, compare)));
  }, [read, shown, followed, compare]);
  useEffect(() => {
    readAgain();
    const stops = [onWake(readAgain), onElsewhere(readAgain)];
    return () => stops.forEach((stop) => stop());
  }, [readAgain]);
  // Older items may have changed, too, so the list begins again.
  useEffect(() => onUndone(() => setRound((before) => before + 1)), []);

  const { next } = listed;
  const readMore = useCallback(() => {
    if (!read || !next || busy.current === shown) return;
    busy.current = shown;
    void followed(shown.readMore(() => read(next), (before, page) => withNext(before, page, compare))).finally(() => {
      if (busy.current === shown) busy.current = undefined;
    });
  }, [read, shown, followed, next, compare]);

  const progress = failed === shown ? "failed" : read && next === undefined ? "loading" : "idle";
  return { ...listed, progress, readMore, readAgain };
}
