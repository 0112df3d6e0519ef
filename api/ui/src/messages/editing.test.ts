import { expect, test } from "vitest";

import { formAfter } from "./editing";

const [OLD, NEW] = ["old", "new"];
/** What is left of the form after this was told: what the message says, and what could not be said instead. */
const after = (...told: [text: string, unsent?: string][]) => told.reduce<string | undefined>((form, [text, unsent]) => formAfter(form, text, unsent), undefined);

test("an edit that was refused can be mended in its place", () => {
  expect(after([OLD], [NEW], [NEW, NEW])).toBe(NEW);
  expect(after([OLD], [NEW], [NEW, NEW], [OLD, NEW])).toBe(NEW);
});

test("an edit that was refused stays there while something else is said", () => expect(after([OLD], [OLD, NEW], [OLD])).toBe(NEW));

test("an edit that is sent again, or has arrived, needs no form", () => expect(after([OLD], [OLD, NEW], [OLD], [NEW])).toBeUndefined());

test("an edit outlives another one of the same message", () => expect(after([OLD], [OLD, NEW], ["from elsewhere"])).toBe(NEW));

test("a message that nobody edits has no form", () => expect(after([OLD], [NEW])).toBeUndefined());
