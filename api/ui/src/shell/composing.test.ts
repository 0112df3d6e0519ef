import { expect, test } from "vitest";

import type { Unsent } from "../chat/chat";
import { beginning, draftIn, next, type Composing, type Happening } from "./composing";

const write = (text: string): Happening => ({ is: "written", text });
const sent: Happening = { is: "sent" };
const underway: Unsent = { text: "hello", isUnderway: true };
const refused: Unsent = { text: "hello", isUnderway: false };
const told = (unsent?: Unsent): Happening => ({ is: "told", unsent });
const after = (...happenings: Happening[]) => happenings.reduce<Composing>(next, { text: "" });

test("a sent message leaves the field, and is a draft until it has arrived", () => {
  const now = after(write("hello"), sent, told(underway));
  expect([now.text, draftIn(now, underway)]).toEqual(["", "hello"]);
  expect(draftIn(next(now, told()), undefined)).toBe("");
});

test("a reopened field does not have the message in flight", () => {
  expect(beginning("hello\n\nand", underway)).toEqual({ text: "and" });
  expect(beginning("hello", refused)).toEqual({ text: "hello" });
  expect(beginning("and", undefined)).toEqual({ text: "and" });
});

test("an unsent message returns once, before the newer text", () => {
  const now = after(write("hello"), sent, told(underway), write("and"), told(refused));
  expect(now.text).toBe("hello\n\nand");
  expect(next(now, told(refused)).text).toBe("hello\n\nand");
  expect(draftIn(now, refused)).toBe("hello\n\nand");
});

test("a retry takes the returned text back, unless its writer has changed it", () => {
  const now = after(write("hello"), sent, told(underway), told(refused));
  expect(next(now, told(underway)).text).toBe("");
  expect(after(write("hello"), sent, told(underway), told(refused), told(underway), told(refused)).text).toBe("hello");
  expect(next(next(now, write("hello you")), told(underway)).text).toBe("hello you");
});

test("a message that has arrived leaves the field, unless its writer has changed it", () => {
  const now = after(write("hello"), sent, told(underway), told(refused));
  expect(next(now, told()).text).toBe("");
  expect(next(next(now, write("hello you")), told()).text).toBe("hello you");
});

test("an unsent message stays during another request", () => {
  const now = after(write("hello"), sent, told(underway), told(refused));
  const edit = { text: "hi", instead: "message", isUnderway: true };
  const again = { isUnderway: true };
  for (const other of [edit, again]) {
    expect(next(next(now, told(other)), told()).text).toBe("hello");
    expect(draftIn(next(now, told(other)), other)).toBe("hello");
  }
});

test("an edit of another message does not enter the field", () => {
  const edit = { ...refused, instead: "message" };
  expect(after(write("next"), told({ ...edit, isUnderway: true }), told(edit)).text).toBe("next");
});
