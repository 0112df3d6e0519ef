import { expect, it } from "vitest";

import type { Kept } from "../shell/kept";
import { dropFiles, filesOfDraft, keepFiles } from "./drafts";

const DAY_MS = 86_400_000;
const file = (id: string) => ({ id, name: `${id}.txt`, mediaType: "text/plain", bytes: 1 });

function storage(): Kept {
  const values = new Map<string, string>();
  return { getItem: (key) => values.get(key) ?? null, setItem: (key, value) => void values.set(key, value), removeItem: (key) => void values.delete(key) };
}

it("each draft keeps its own files", () => {
  const kept = storage();
  keepFiles("one", [file("a")], kept);
  keepFiles("two", [file("b"), file("c")], kept);
  expect([filesOfDraft("one", kept), filesOfDraft("two", kept)]).toEqual([[file("a")], [file("b"), file("c")]]);
  keepFiles("one", [], kept);
  dropFiles("two", [file("b")], kept);
  expect([filesOfDraft("one", kept), filesOfDraft("two", kept)]).toEqual([[], [file("c")]]);
  dropFiles("two", [file("c")], kept);
  expect(kept.getItem("holdfast.files")).toBeNull();
});

it("a file that the server has deleted by itself is forgotten", () => {
  const kept = storage();
  keepFiles("one", [file("a")], kept, 0);
  expect(filesOfDraft("one", kept, DAY_MS - 1)).toEqual([file("a")]);
  expect(filesOfDraft("one", kept, DAY_MS)).toEqual([]);
});

it("foreign values in storage are no files", () => {
  const kept = storage();
  for (const value of ["{", "[1]", '{"one":{"files":1}}', "null"]) {
    kept.setItem("holdfast.files", value);
    expect(filesOfDraft("one", kept)).toEqual([]);
  }
});
