import { expect, test } from "vitest";

import { draftOf, forgetDrafts, joined, keepDraft, NEW_CHAT, replaceDraft } from "./drafts";
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

test("a newer draft replaces an arrived one, unless its writer has changed that", () => {
  const kept = storage();
  keepDraft(NEW_CHAT, "sent\n\nnext", kept);
  replaceDraft(NEW_CHAT, "sent\n\nnext", "next", kept);
  expect(draftOf(NEW_CHAT, kept)).toBe("next");
  replaceDraft(NEW_CHAT, "sent\n\nnext", "", kept);
  expect(draftOf(NEW_CHAT, kept)).toBe("next");
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
