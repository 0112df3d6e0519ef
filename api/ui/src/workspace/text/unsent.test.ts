import { expect, test } from "vitest";

import { keepUnsaved, unsavedOf } from "./unsent";

function storage() {
  const values = new Map<string, string>();
  return { getItem: (key: string) => values.get(key) ?? null, setItem: (key: string, value: string) => void values.set(key, value), removeItem: (key: string) => void values.delete(key) };
}

const unsaved = { text: "mine", base: "before", version: 3 };

test("an unsaved text is kept with its version until it is forgotten", () => {
  const kept = storage();
  keepUnsaved("document/1/body", unsaved, kept);
  expect(unsavedOf("document/1/body", kept)).toMatchObject(unsaved);
  keepUnsaved("document/1/body", undefined, kept);
  expect(unsavedOf("document/1/body", kept)).toBeUndefined();
  expect(kept.getItem("holdfast.texts")).toBeNull();
});

test("an old text expires when another one is kept", () => {
  const kept = storage();
  keepUnsaved("a", unsaved, kept, 0);
  keepUnsaved("b", unsaved, kept, 31 * 86_400_000);
  expect([unsavedOf("a", kept), unsavedOf("b", kept)?.text]).toEqual([undefined, "mine"]);
});

test("foreign content of the storage counts as none", () => {
  const kept = storage();
  for (const content of ["{", "3", '{"a": 1}', '{"a": {"text": "x"}}']) {
    kept.setItem("holdfast.texts", content);
    expect(unsavedOf("a", kept)).toBeUndefined();
  }
});
