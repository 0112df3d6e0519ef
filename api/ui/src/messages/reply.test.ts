import { expect, test } from "vitest";

import { answersIn, replyTo, withoutQuestions } from "./reply";

test.each([
  { name: "one answer stands alone", questions: ["Which ship?"], answers: [" the old one "], reply: "the old one" },
  { name: "each of several follows its question", questions: ["Which ship?", "When?"], answers: ["the old one", "today"], reply: "Which ship?\nthe old one\n\nWhen?\ntoday" },
  { name: "a question may stay open", questions: ["Which ship?", "When?"], answers: ["", "today"], reply: "When?\ntoday" },
  { name: "no answer is no message", questions: ["Which ship?"], answers: ["  "], reply: "" },
])("$name", ({ questions, answers, reply }) => {
  expect(replyTo(questions, answers)).toBe(reply);
});

test.each([
  ["", ["", ""]],
  ['["the old one"]', ["the old one", ""]],
  ['[1, "today", "more"]', ["", "today"]],
  ["[", ["", ""]],
])("stored answers %j are those to two questions", (kept, answers) => expect(answersIn(kept, 2)).toEqual(answers));

test.each([
  ["a question at the end", "First:\n\nWhich ship?", ["Which ship?"], "First:"],
  ["numbered questions", "First:\n\n1. Which ship?\n2. When?", ["Which ship?", "When?"], "First:"],
  ["nothing else", "Which ship?", ["Which ship?"], ""],
  ["a question in the middle", "Which ship?\nThat is it.", ["Which ship?"], "Which ship?\nThat is it."],
  ["other questions", "Why not?", ["Which ship?"], "Why not?"],
])("a text without the questions that fields repeat: %s", (_, text, questions, left) => {
  expect(withoutQuestions(text, questions)).toBe(left);
});
