import { expect, test } from "vitest";

import type { Posting, Unsent } from "../chat/chat";
import { hasSent } from "./sent";

const posting = (id: string): Posting => ({ id, text: id, mode: "steer" });
const chat = (unsent?: Unsent, ...ids: string[]) => ({ unsent, posting: ids.map(posting) });
const underway: Unsent = { text: "hello", isUnderway: true };

test("a message that leaves for the server is sent", () => {
  expect(hasSent(chat(), chat(underway))).toBe(true);
  expect(hasSent(chat({ ...underway, isUnderway: false }), chat(underway))).toBe(true);
  expect(hasSent(chat(underway), chat(underway))).toBe(false);
  expect(hasSent(chat(underway), chat())).toBe(false);
});

test("another answer sends no message", () => {
  expect(hasSent(chat(), chat({ isUnderway: true }))).toBe(false);
});

test("a message beside an answer is sent once, and not when the server has it or another one", () => {
  expect(hasSent(chat(), chat(undefined, "a"))).toBe(true);
  expect(hasSent(chat(undefined, "a"), chat(undefined, "a", "b"))).toBe(true);
  expect(hasSent(chat(undefined, "a", "b"), chat(undefined, "b"))).toBe(false);
  expect(hasSent(chat(undefined, "a"), { unsent: undefined, posting: [{ ...posting("a"), state: "held" }] })).toBe(false);
});
