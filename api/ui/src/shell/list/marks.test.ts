import { expect, test } from "vitest";

import { beginsLike, marksOf } from "./marks";

const marked = (text: string, query: string) =>
  marksOf(text, query)
    .map(({ text, isMarked }) => (isMarked ? `[${text}]` : text))
    .join("");

test.each([
  ["The Harbour plan", "harbour", "The [Harbour] plan"],
  ["The Harbour plan", "PLAN  the", "[The] Harbour [plan]"],
  ["Harbours of the harbour", "harb", "[Harb]ours of the [harb]our"],
  ["The Harbour plan", "harbuor", "The [Harbour] plan"],
  ["The Harbours plan", "hrbour", "The [Harbours] plan"],
  ["The Harbour plan", "hrb", "The Harbour plan"],
  ["潮汐是怎么形成的", "形成", "潮汐是怎么[形成]的"],
  ["a.b (c)", "(c)", "a.b [(c)]"],
  ["İstanbul", "stan", "İstanbul"],
  ["text", "", "text"],
])("%s, %s", (text, query, expected) => {
  expect(marked(text, query)).toBe(expected);
});

test("one error is forgiven, as on the server, and two are not", () => {
  for (const word of ["harbour", "hxrbour", "xarbour", "harbou", "habour", "arbour", "harboour", "hharbour", "ahrbour", "harbuor", "harbourx"]) expect(beginsLike("harbour", word), word).toBe(true);
  for (const word of ["hxrbxur", "ahbrour", "xxrbour", "hbour", "harbourxx"]) expect(beginsLike("harbour", word), word).toBe(false);
});
