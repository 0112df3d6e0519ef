import { expect, test } from "vitest";

import type { Conversation } from "../../client/server";
import { neighbour, withFirstPage, withNextPage, withChanged, type Listed } from "./listed";

/** The id is the day of the conversation's newest message. */
const on = (day: number): Conversation => ({
  id: `c${day}`,
  title: null,
  agent_id: null,
  live_run_id: null,
  forked_from: null,
  created_at: "2026-11-01T00:00:00.000Z",
  last_message_at: `2026-11-${String(day).padStart(2, "0")}T00:00:00.000Z`,
});
const listed = (days: number[], next: string | null): Listed => ({ items: days.map(on), next });
const ids = ({ items }: Listed) => items.map(({ id }) => id);

test("the first page replaces its part, before the later pages", () => {
  const before = listed([9, 8, 7, 6, 5], "5");
  const after = withFirstPage(before, listed([10, 9, 8], "8"));
  expect([ids(after), after.next]).toEqual([["c10", "c9", "c8", "c7", "c6", "c5"], "5"]);
});

test("a conversation that left the first page leaves the list", () => {
  expect(ids(withFirstPage(listed([9, 8, 7, 6], "6"), listed([9, 7], "7")))).toEqual(["c9", "c7", "c6"]);
  expect(ids(withFirstPage(listed([9, 8, 7], "7"), listed([9], null)))).toEqual(["c9"]);
  expect(ids(withFirstPage(listed([9], null), listed([], null)))).toEqual([]);
});

test("a conversation that moved between two pages appears once", () => {
  const after = withNextPage(listed([9, 8], "8"), listed([8, 7], null));
  expect([ids(after), after.next]).toEqual([["c9", "c8", "c7"], null]);
});

test("a title changes in its place", () => {
  expect(withChanged(listed([2, 1], null), { id: "c1", fields: { title: "One" } }).items.map(({ title }) => title)).toEqual([null, "One"]);
});

test("a deleted conversation leaves the list, also from a later page", () => {
  const after = withChanged(listed([3, 2, 1], "1"), { id: "c2", isDeleted: true });
  expect([ids(after), after.next]).toEqual([["c3", "c1"], "1"]);
});

test("a conversation has neighbours, except at the ends", () => {
  const { items } = listed([3, 2, 1], null);
  expect(neighbour(items, "c2", 1)?.id).toBe("c1");
  expect(neighbour(items, "c2", -1)?.id).toBe("c3");
  expect(neighbour(items, "c1", 1)).toBeUndefined();
  expect(neighbour(items, undefined, 1)?.id).toBe("c3");
});
