import { expect, test } from "vitest";

import type { Progress } from "../chat/chat";
import { draftIn, next, type Composing, type Happening } from "./composing";

const write = (text: string): Happening => ({ is: "written", text });
const sent: Happening = { is: "sent" };
const at = (progress: Progress, hasProblem = false): Happening => ({ is: "progress", progress, hasProblem });
const after = (...happenings: Happening[]) => happenings.reduce<Composing>(next, { text: "" });

test("what is sent leaves the field, and is a draft until the answer begins", () => {
  const underway = after(write("hello"), sent, at("submitted"));
  expect([underway.text, draftIn(underway)]).toEqual(["", "hello"]);
  expect(draftIn(next(underway, at("streaming")))).toBe("");
});

test("what could not be sent comes back, before what was written meanwhile", () => {
  const failed = after(write("hello"), sent, at("submitted"), write("and"), at("idle", true));
  expect(failed.text).toBe("hello\n\nand");
});

test("a problem that was there before is about an older message", () => {
  expect(after(write("hello"), sent, at("idle", true)).text).toBe("");
  expect(draftIn(after(write("hello"), sent, at("idle", false)))).toBe("hello");
});

test("a message that was stopped at once has arrived", () => {
  expect(draftIn(after(write("hello"), sent, at("submitted"), at("idle")))).toBe("");
});

test("retrying takes back what had come back, unless it was changed", () => {
  const failed = after(write("hello"), sent, at("submitted"), at("idle", true));
  expect(next(failed, at("submitted")).text).toBe("");
  expect(draftIn(next(failed, at("submitted")))).toBe("hello");
  expect(next(next(failed, write("hello you")), at("submitted")).text).toBe("hello you");
});

test("an answer that fails later brings nothing back", () => {
  const failed = after(write("hello"), sent, at("submitted"), at("streaming"), write("next"), at("idle", true));
  expect(failed).toEqual({ text: "next" });
});
