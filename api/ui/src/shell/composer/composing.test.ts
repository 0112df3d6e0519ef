import { expect, test } from "vitest";

import type { Unsent } from "../../chat/chat";
import { beginning, draftAfter, draftIn, next, type Composing, type Happening } from "./composing";

const write = (text: string): Happening => ({ is: "written", text });
const sent: Happening = { is: "sent" };
const underway: Unsent = { text: "hello", isUnderway: true };
const refused: Unsent = { text: "hello", isUnderway: false };
const reported = (unsent?: Unsent): Happening => ({ is: "reported", unsent });
const after = (...happenings: Happening[]) => happenings.reduce<Composing>(next, { text: "" });

test("a sent message leaves the field, and is a draft until it has arrived", () => {
  const now = after(write("hello"), sent, reported(underway));
  expect([now.text, draftIn(now, { unsent: underway })]).toEqual(["", "hello"]);
  expect(draftIn(next(now, reported()), {})).toBe("");
});

test("a reopened field does not have the message in flight", () => {
  expect(beginning("hello\n\nand", { unsent: underway })).toEqual({ text: "and" });
  expect(beginning("hello", { unsent: refused })).toEqual({ text: "hello" });
  expect(beginning("and", {})).toEqual({ text: "and" });
});

test("messages beside an answer are a draft until they have arrived", () => {
  const posting = [{ id: "1", text: "first", mode: "steer" }, { id: "2", text: "second", mode: "enqueue" }] as const;
  expect(draftIn({ text: "third" }, { posting })).toBe("first\n\nsecond\n\nthird");
  expect(beginning("first\n\nsecond\n\nthird", { posting })).toEqual({ text: "third" });
  // Their writer has left the chat, and the server has refused one of them.
  expect(draftAfter("third", [{ text: "second", isUnderway: false }])).toBe("second\n\nthird");
  expect(draftAfter("third", [{ text: "an edit", instead: "message", isUnderway: false }])).toBe("third");
});

test("an unsent message returns once, before the newer text", () => {
  const now = after(write("hello"), sent, reported(underway), write("and"), reported(refused));
  expect(now.text).toBe("hello\n\nand");
  expect(next(now, reported(refused)).text).toBe("hello\n\nand");
  expect(draftIn(now, { unsent: refused })).toBe("hello\n\nand");
});

test("a retry takes the returned text back, unless its writer has changed it", () => {
  const now = after(write("hello"), sent, reported(underway), reported(refused));
  expect(next(now, reported(underway)).text).toBe("");
  expect(after(write("hello"), sent, reported(underway), reported(refused), reported(underway), reported(refused)).text).toBe("hello");
  expect(next(next(now, write("hello you")), reported(underway)).text).toBe("hello you");
});

test("a message that has arrived leaves the field, unless its writer has changed it", () => {
  const now = after(write("hello"), sent, reported(underway), reported(refused));
  expect(next(now, reported()).text).toBe("");
  expect(next(next(now, write("hello you")), reported()).text).toBe("hello you");
});

test("an unsent message stays during another request", () => {
  const now = after(write("hello"), sent, reported(underway), reported(refused));
  const edit = { text: "hi", instead: "message", isUnderway: true };
  const again = { isUnderway: true };
  for (const other of [edit, again]) {
    expect(next(next(now, reported(other)), reported()).text).toBe("hello");
    expect(draftIn(next(now, reported(other)), { unsent: other })).toBe("hello");
  }
});

test("an edit of another message does not enter the field", () => {
  const edit = { ...refused, instead: "message" };
  expect(after(write("next"), reported({ ...edit, isUnderway: true }), reported(edit)).text).toBe("next");
});
