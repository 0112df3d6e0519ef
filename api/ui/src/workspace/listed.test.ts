import { expect, test } from "vitest";

import { withFirst, withItem, withNext, without } from "./listed";

const items = (...ids: string[]) => ids.map((id) => ({ id }));
const ids = (listed: { items: readonly { id: string }[] }) => listed.items.map(({ id }) => id).join("");

test("a next page follows the list, without the items that are there", () => {
  expect(withNext({ items: items("5", "4", "2"), next: "4" }, { items: items("3", "2"), next: null })).toEqual({ items: items("5", "4", "2", "3"), next: null });
});

test("a first page replaces what it covers, and keeps older items", () => {
  const listed = { items: items("5", "4", "3", "2"), next: "2" };
  expect(withFirst(listed, { items: items("6", "4"), next: "4" })).toEqual({ items: items("6", "4", "3", "2"), next: "2" });
  expect(withFirst(listed, { items: items("6"), next: null })).toEqual({ items: items("6"), next: null });
  expect(withFirst({ items: items("1"), next: undefined }, { items: items("6", "4"), next: "4" })).toEqual({ items: items("6", "4", "1"), next: "4" });
});

test("an item has its place by its age", () => {
  const listed = { items: items("5", "3"), next: null };
  expect([ids(withItem(listed, { id: "4" })), ids(withItem(listed, { id: "1" })), ids(withItem(listed, { id: "6" })), ids(withItem(listed, { id: "3" }))]).toEqual(["543", "531", "653", "53"]);
});

test("a removed item is gone, and another id changes nothing", () => {
  const listed = { items: items("5", "3"), next: null };
  expect(ids(without(listed, "5"))).toBe("3");
  expect(without(listed, "7")).toBe(listed);
});

test("a list in another order moves a changed item, and takes a page around it", () => {
  type Item = { id: string; weight: number };
  const heaviest = (one: Item, other: Item) => other.weight - one.weight;
  const listed = { items: [{ id: "a", weight: 9 }, { id: "b", weight: 5 }, { id: "c", weight: 3 }], next: "c" };
  expect(ids(withItem(listed, { id: "c", weight: 7 }, heaviest))).toBe("acb");
  expect(ids(withItem(listed, { id: "b", weight: 4 }, heaviest))).toBe("abc");
  const early = withItem(listed, { id: "d", weight: 1 }, heaviest);
  expect(ids(withNext(early, { items: [{ id: "e", weight: 2 }, { id: "d", weight: 1 }], next: null }, heaviest))).toBe("abced");
  expect(ids(withFirst(early, { items: [{ id: "c", weight: 9 }, { id: "b", weight: 5 }], next: "b" }, heaviest))).toBe("cbd");
});
