import { expect, test } from "vitest";

import { formAfter } from "./editing";

const [OLD, NEW] = ["old", "new"];
/** Returns the form after these updates: each has the message's text and its unsent edit. */
const after = (...reports: [text: string, unsent?: string][]) => reports.reduce<string | undefined>((form, [text, unsent]) => formAfter(form, text, unsent), undefined);

test("the writer can correct a refused edit in its place", () => {
  expect(after([OLD], [NEW], [NEW, NEW])).toBe(NEW);
  expect(after([OLD], [NEW], [NEW, NEW], [OLD, NEW])).toBe(NEW);
});

test("a refused edit stays open during another message", () => expect(after([OLD], [OLD, NEW], [OLD])).toBe(NEW));

test("an edit that the writer sends again, or that has arrived, needs no form", () => expect(after([OLD], [OLD, NEW], [OLD], [NEW])).toBeUndefined());

test("an edit outlives another edit of its message", () => expect(after([OLD], [OLD, NEW], ["from elsewhere"])).toBe(NEW));

test("a message without an edit has no form", () => expect(after([OLD], [NEW])).toBeUndefined());
