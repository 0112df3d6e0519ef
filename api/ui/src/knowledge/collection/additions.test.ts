import { Problem } from "holdfast-client/problem";
import type { StoredFile } from "holdfast-client/wire";
import { expect, test } from "vitest";

import type { KnowledgeDocument } from "../../client/knowledge";
import { Additions, type Calls } from "./additions";

const fileOf = (name: string) => new File(["tide"], name, { type: "text/plain" });
const stored = (name: string) => ({ id: `file of ${name}`, name, bytes: 4 }) as StoredFile;
const documentOf = (fileId: string) => ({ id: `document of ${fileId}` }) as KnowledgeDocument;

/** Resolves as soon as the additions are so. */
function until(additions: Additions, is: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => is() && (stop(), resolve());
    const stop = additions.subscribe(look);
    look();
  });
}

function callsWith(changes: Partial<Calls> = {}): Calls & { deleted: string[]; order: string[] } {
  const [deleted, order]: [string[], string[]] = [[], []];
  return {
    deleted,
    order,
    upload: async (_file, name) => (order.push(`upload ${name}`), stored(name)),
    add: async (_collection, fileId) => (order.push(`add ${fileId}`), documentOf(fileId)),
    deleteStored: async (id) => deleted.push(id),
    ...changes,
  };
}

test("files go one after another, each as a document", async () => {
  const does = callsWith();
  const additions = new Additions("c", does);
  additions.add([fileOf("a"), fileOf("b")]);
  await until(additions, () => additions.items.length === 0);
  expect(does.order).toEqual(["upload a", "add file of a", "upload b", "add file of b"]);
  expect(additions.taken.map(({ id }) => id)).toEqual(["document of file of a", "document of file of b"]);
});

test("a server that has enough to do is asked again with one key, and the next file waits", async () => {
  const keys: string[] = [];
  const does = callsWith({
    add: async (_collection, fileId, key) => {
      keys.push(key);
      if (keys.length === 1) throw new Problem(429, "too_many_runs", "later", 0);
      return documentOf(fileId);
    },
  });
  const additions = new Additions("c", does);
  additions.add([fileOf("a"), fileOf("b")]);
  await until(additions, () => additions.items[0]?.state === "held");
  expect(additions.items.map(({ state }) => state)).toEqual(["held", "waiting"]);
  await until(additions, () => additions.items.length === 0);
  expect(keys[0]).toBe(keys[1]);
  expect(keys[2]).not.toBe(keys[1]);
});

test("a refused file says why, is deleted, and holds up no other one", async () => {
  const does = callsWith({
    add: async (_collection, fileId) => {
      if (fileId === "file of a") throw new Problem(415, "document_type_refused", "No text can be extracted.");
      return documentOf(fileId);
    },
  });
  const additions = new Additions("c", does);
  additions.add([fileOf("a"), fileOf("b")]);
  await until(additions, () => additions.taken.length === 1 && additions.items.every(({ state }) => state === "failed"));
  expect(additions.items.map(({ name, problem }) => [name, problem?.code])).toEqual([["a", "document_type_refused"]]);
  expect(does.deleted).toEqual(["file of a"]);
});

test("a removed file becomes no document", async () => {
  let arrive = (_file: StoredFile) => {};
  const does = callsWith({ upload: () => new Promise((resolve) => (arrive = resolve)) });
  const additions = new Additions("c", does);
  additions.add([fileOf("a")]);
  additions.remove(additions.items[0]!.key);
  expect(additions.items).toEqual([]);
  arrive(stored("a"));
  await expect.poll(() => does.deleted).toEqual(["file of a"]);
  expect(additions.taken).toEqual([]);
});
