import { Problem } from "holdfast-client/problem";
import type { StoredFile } from "holdfast-client/wire";
import { expect, it, vi } from "vitest";

import type { Uploading } from "../client/upload";
import { MOST_FILES, Tray, obstacleOf } from "./tray";

const stored = (name: string): StoredFile => ({ id: `id-${name}`, name, media_type: "text/plain", bytes: 1, created_at: "2026-01-01T00:00:00Z", sha256: "abc", received: 1 });
const file = (name: string) => new File(["x"], name, { type: "text/plain" });
const kept = { id: "k", name: "kept.txt", mediaType: "text/plain", bytes: 3 };

/** A tray whose uploads end as the test says. */
function trayWith() {
  const uploads: { name: string; options: Uploading; end(file: StoredFile): void; fail(error: Error): void }[] = [];
  const deleted: string[] = [];
  const tray = new Tray(
    (_, name, options) =>
      new Promise((end, fail) => {
        options.signal.addEventListener("abort", () => fail(options.signal.reason));
        uploads.push({ name, options, end, fail });
      }),
    async (id) => void deleted.push(id),
  );
  return { tray, uploads, deleted, states: () => tray.items.map(({ name, state }) => `${name} ${state}`) };
}

it("a file is uploaded at once, and then belongs to the message", async () => {
  const { tray, uploads, states } = trayWith();
  expect(tray.add([file("a.txt")])).toBe(0);
  expect([states(), obstacleOf(tray.items), tray.files]).toEqual([["a.txt uploading"], "uploading", []]);
  uploads[0]!.options.onProgress!(1);
  expect(tray.items[0]!.received).toBe(1);
  uploads[0]!.end(stored("a.txt"));
  await vi.waitFor(() => expect(obstacleOf(tray.items)).toBeUndefined());
  expect(tray.files).toEqual([{ id: "id-a.txt", name: "a.txt", mediaType: "text/plain", bytes: 1 }]);
});

it("a failed upload keeps its reason, and another try continues it", async () => {
  const { tray, uploads, states } = trayWith();
  tray.add([file("a.txt")]);
  uploads[0]!.options.begun.id = "half";
  uploads[0]!.fail(new Problem(403, "too_many_files", "An owner may have 1 file."));
  await vi.waitFor(() => expect(obstacleOf(tray.items)).toBe("failed"));
  expect(tray.items[0]!.problem?.message).toBe("An owner may have 1 file.");
  tray.retry(tray.items[0]!.key);
  expect([states(), uploads[1]!.options.begun.id]).toEqual([["a.txt uploading"], "half"]);
});

it("the server deletes a removed file, unless other messages may have it", async () => {
  const { tray, uploads, deleted } = trayWith();
  tray.put([kept]);
  tray.add([file("a.txt")]);
  uploads[0]!.end(stored("a.txt"));
  await vi.waitFor(() => expect(tray.files).toHaveLength(2));
  tray.items.forEach(({ key }) => tray.remove(key));
  expect([tray.items, deleted]).toEqual([[], ["id-a.txt"]]);
});

it("a file that is removed while it is uploaded stays nowhere", async () => {
  const { tray, uploads, deleted } = trayWith();
  tray.add([file("a.txt"), file("b.txt")]);
  uploads[0]!.options.begun.id = "half";
  tray.remove(tray.items[0]!.key);
  await vi.waitFor(() => expect(deleted).toEqual(["half"]));
  // The server has answered in the moment of the removal.
  uploads[1]!.end(stored("b.txt"));
  tray.remove(tray.items[0]!.key);
  await vi.waitFor(() => expect(deleted).toEqual(["half", "id-b.txt"]));
  expect(tray.items).toEqual([]);
});

it("a sent file leaves the tray and stays on the server", async () => {
  const { tray, uploads, deleted } = trayWith();
  tray.add([file("a.txt")]);
  uploads[0]!.end(stored("a.txt"));
  await vi.waitFor(() => expect(tray.files).toHaveLength(1));
  tray.drop(tray.files);
  expect([tray.items, deleted]).toEqual([[], []]);
});

it("a file is on the tray once, and a message has a limited number", () => {
  const { tray } = trayWith();
  tray.put([kept]);
  tray.put([kept]);
  expect(tray.items).toHaveLength(1);
  expect(tray.add(Array.from({ length: MOST_FILES }, (_, n) => file(`${n}.txt`)))).toBe(1);
  expect(tray.items).toHaveLength(MOST_FILES);
});
