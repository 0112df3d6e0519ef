import { expect, test } from "vitest";

import { draftOf, forgetDrafts, joined, keepDraft, NEW_CHAT, TabDrafts } from "./drafts";
import type { Kept } from "../kept";

function storage(): Kept & { kept: Map<string, string> } {
  const kept = new Map<string, string>();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, value),
    removeItem: (key) => void kept.delete(key),
  };
}

test("each conversation has its own draft", () => {
  const kept = storage();
  keepDraft("a", "to a", kept);
  keepDraft(NEW_CHAT, "to nobody yet", kept);
  expect([draftOf("a", kept), draftOf(NEW_CHAT, kept), draftOf("b", kept)]).toEqual(["to a", "to nobody yet", ""]);
});

test("a blank or sent draft leaves nothing in storage", () => {
  const kept = storage();
  keepDraft("a", "text", kept);
  keepDraft("a", " \n", kept);
  expect(kept.kept.size).toBe(0);
});

/** Returns two tabs of one browser, and their shared storage. */
function twoTabs() {
  const shared = storage();
  const tab = () => {
    const aside = storage();
    return new TabDrafts(shared, () => aside);
  };
  return { shared, one: tab(), other: tab() };
}

test("a newer draft replaces an arrived one, unless its writer has changed that", () => {
  const { shared, one } = twoTabs();
  one.keep(NEW_CHAT, "sent\n\nnext");
  one.replace(NEW_CHAT, "sent\n\nnext", "next");
  expect(draftOf(NEW_CHAT, shared)).toBe("next");
  one.replace(NEW_CHAT, "sent\n\nnext", "");
  expect(draftOf(NEW_CHAT, shared)).toBe("next");
});

test("a tab leaves the draft of another tab, and keeps its own aside", () => {
  const { shared, one, other } = twoTabs();
  expect([one.read("a"), other.read("a")]).toEqual(["", ""]);
  one.keep("a", "of one");
  other.keep("a", "of the other");
  expect([one.read("a"), other.read("a")]).toEqual(["of one", "of the other"]);
  other.keep("a", "");
  expect([one.read("a"), other.read("a")]).toEqual(["of one", "of one"]);
  one.keep("a", "");
  expect(draftOf("a", shared)).toBe("");
});

test("a tab may replace the draft that it has read, and the writer keeps it", () => {
  const { shared, one, other } = twoTabs();
  one.keep("a", "of one");
  expect(other.read("a")).toBe("of one");
  other.keep("a", "of the other");
  one.yield();
  other.keep("a", "");
  one.yield();
  expect([draftOf("a", shared), one.read("a"), other.read("a")]).toEqual(["", "of one", ""]);
  one.keep("a", "of one!");
  expect(draftOf("a", shared)).toBe("of one!");
});

test("a draft that another tab has sent is none any more", () => {
  const { one, other } = twoTabs();
  one.keep("a", "of one");
  expect(other.read("a")).toBe("of one");
  other.keep("a", "");
  one.yield();
  expect(one.read("a")).toBe("");
});

test("a tab that has only read a draft follows it", () => {
  const { one, other } = twoTabs();
  one.keep("a", "of one");
  expect(other.read("a")).toBe("of one");
  one.keep("a", "of one!");
  other.yield();
  expect(other.read("a")).toBe("of one!");
});

test("the draft of a chat that is gone joins that of a new chat", () => {
  const { one } = twoTabs();
  one.keep("gone", "of the gone chat");
  one.keep(NEW_CHAT, "of the new chat");
  one.move("gone", NEW_CHAT);
  expect([one.read("gone"), one.read(NEW_CHAT)]).toEqual(["", "of the new chat\n\nof the gone chat"]);
});

test("forgetting the drafts leaves nothing for the next reader", () => {
  const kept = storage();
  keepDraft("a", "text", kept);
  forgetDrafts(kept);
  expect(kept.kept.size).toBe(0);
});

test("a draft expires after a month", () => {
  const kept = storage();
  keepDraft("a", "old", kept, 0);
  keepDraft("b", "new", kept, 31 * 86_400_000);
  expect([draftOf("a", kept), draftOf("b", kept)]).toEqual(["", "new"]);
});

test("stored drafts may be broken, and storage may fail", () => {
  const kept = storage();
  for (const broken of ["{", "null", '{"a":1}', '{"a":{"text":1,"at":1}}']) {
    kept.setItem("holdfast.drafts", broken);
    expect(draftOf("a", kept)).toBe("");
  }
  const full: Kept = {
    ...storage(),
    setItem: () => {
      throw new DOMException("full", "QuotaExceededError");
    },
  };
  keepDraft("a", "text", full);
});

test("a returned text stands before the newer text", () => {
  expect(joined("first", "second")).toBe("first\n\nsecond");
  expect(joined(" ", "second")).toBe("second");
  expect(joined("first", "")).toBe("first");
});
