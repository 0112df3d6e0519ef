import { expect, test } from "vitest";

import { replyTo } from "./reply";

test.each([
  { name: "one answer stands alone", questions: ["Which ship?"], answers: [" the old one "], reply: "the old one" },
  { name: "each of several follows its question", questions: ["Which ship?", "When?"], answers: ["the old one", "today"], reply: "Which ship?\nthe old one\n\nWhen?\ntoday" },
  { name: "a question may stay open", questions: ["Which ship?", "When?"], answers: ["", "today"], reply: "When?\ntoday" },
  { name: "no answer is no message", questions: ["Which ship?"], answers: ["  "], reply: "" },
])("$name", ({ questions, answers, reply }) => {
  expect(replyTo(questions, answers)).toBe(reply);
});
