import { expect, test } from "vitest";

import { Changes } from "./changes";
import { Shown } from "./shown";

type Title = { id: string; title: string };
type Titles = Record<string, string>;

/** A promise that its test settles. */
function held<T>() {
  let settle!: { resolve(value: T): void; reject(error: Error): void };
  const promise = new Promise<T>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle };
}

/** A view of titles, with its server's answers in the test's hand. */
function view(first: Titles = { a: "old", b: "other" }) {
  const changes = new Changes<Title>();
  const shown = new Shown<Titles, Title>(first, changes, (titles, { id, title }) => ({ ...titles, [id]: title }));
  shown.subscribe(() => {});
  const read = () => {
    const answer = held<Titles>();
    const end = shown.read(() => answer.promise, (_, titles) => titles);
    return { ...answer, end };
  };
  const rename = (title: string, id = "a") => {
    const answer = held<Title>();
    const sent: string[] = [];
    const send = () => (sent.push(title), answer.promise);
    const end = changes.make(id, { id, title }, send).catch(() => {});
    return { end, sent, confirm: () => (answer.resolve({ id, title }), end), refuse: () => (answer.reject(new Error("refused")), end) };
  };
  return { changes, shown, read, rename };
}

test("a change shows at once", () => {
  const { shown, rename } = view();
  rename("new");
  expect(shown.value).toEqual({ a: "new", b: "other" });
});

test.each(["before it was sent", "between its sending and its confirmation"])("a read that began %s does not overwrite a change", async (when) => {
  const { shown, read, rename } = view();
  const early = when === "before it was sent" ? read() : undefined;
  const change = rename("new");
  const slow = early ?? read();
  await change.confirm();
  slow.resolve({ a: "old", b: "another" });
  await slow.end;
  expect(shown.value).toEqual({ a: "new", b: "another" });
});

test("a read whose answer arrives while the change is pending does not overwrite it", async () => {
  const { shown, read, rename } = view();
  const slow = read();
  const change = rename("new");
  slow.resolve({ a: "old", b: "another" });
  await slow.end;
  expect(shown.value).toEqual({ a: "new", b: "another" });
  await change.confirm();
  expect(shown.value).toEqual({ a: "new", b: "another" });
});

test("a read that began after the confirmation knows better", async () => {
  const { shown, read, rename } = view();
  await rename("new").confirm();
  const later = read();
  later.resolve({ a: "from another page", b: "other" });
  await later.end;
  expect(shown.value.a).toBe("from another page");
});

test("an older read does not overwrite a newer one", async () => {
  const { shown, read } = view();
  const [older, newer] = [read(), read()];
  newer.resolve({ a: "newer", b: "newer" });
  await newer.end;
  older.resolve({ a: "older", b: "older" });
  await older.end;
  expect(shown.value).toEqual({ a: "newer", b: "newer" });
});

test("an older read that fails after a newer one is no failure", async () => {
  const { read } = view();
  const [older, newer] = [read(), read()];
  newer.resolve({ a: "newer" });
  await newer.end;
  older.reject(new Error("away"));
  await expect(older.end).resolves.toBeUndefined();
  const last = read();
  last.reject(new Error("away"));
  await expect(last.end).rejects.toThrow("away");
});

test("a next page that arrives does not make the first page late", async () => {
  const { shown, read } = view({});
  const first = read();
  await shown.readMore(async () => ({ c: "next" }), (before, page) => ({ ...before, ...page }));
  first.resolve({ a: "first" });
  await first.end;
  expect(shown.value).toEqual({ a: "first" });
});

test("a refused change is taken back, and the later one of it stays", async () => {
  const { shown, rename } = view();
  const [first, second] = [rename("first"), rename("second")];
  expect(shown.value.a).toBe("second");
  await first.refuse();
  expect(shown.value.a).toBe("second");
  await second.refuse();
  expect(shown.value.a).toBe("old");
});

test("a refused change leaves a change of something else", async () => {
  const { shown, rename } = view();
  const [one, other] = [rename("one", "a"), rename("two", "b")];
  await other.confirm();
  await one.refuse();
  expect(shown.value).toEqual({ a: "old", b: "two" });
});

test("the changes of one thing are sent one after the other, so their answers keep their order", async () => {
  const { shown, rename } = view();
  const [first, second] = [rename("first"), rename("second")];
  expect([first.sent, second.sent]).toEqual([["first"], []]);
  await first.confirm();
  expect(second.sent).toEqual(["second"]);
  expect(shown.value.a).toBe("second");
  await second.confirm();
  expect(shown.value.a).toBe("second");
});

test("a change waits for no change of another thing, and is sent after a refused one", async () => {
  const { rename } = view();
  const [one, other, again] = [rename("one", "a"), rename("two", "b"), rename("three", "a")];
  expect([one.sent, other.sent, again.sent]).toEqual([["one"], ["two"], []]);
  await one.refuse();
  expect(again.sent).toEqual(["three"]);
});

test("a view that opens while a change is pending shows it", async () => {
  const { changes, rename } = view();
  const change = rename("new");
  const later = new Shown<Titles, Title>({ a: "old" }, changes, (titles, { id, title }) => ({ ...titles, [id]: title }));
  expect(later.value.a).toBe("new");
  later.subscribe(() => {});
  await change.refuse();
  expect(later.value.a).toBe("old");
});

test("what the server has done by itself survives an older read", async () => {
  const { changes, shown, read } = view();
  const slow = read();
  changes.tell({ id: "a", title: "told" });
  slow.resolve({ a: "old", b: "other" });
  await slow.end;
  expect(shown.value.a).toBe("told");
});
