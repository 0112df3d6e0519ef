import { expect, test } from "vitest";

import type { ChatMessage } from "../chat/message";
import { BLOCK, blocksOf } from "./blocks";

const chat = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => ({ id: `${from + index}`, role: (from + index) % 2 === 0 ? "user" : "assistant", parts: [] })) as ChatMessage[];

const keys = (messages: ChatMessage[], from: string) => blocksOf(messages, from).map(({ key }) => key);

test("all messages are in one block each, in their order", () => {
  for (const [from, to, first] of [[0, 95, "0"], [0, 95, "40"], [0, 3, "0"], [0, 1, "9"], [0, 0, "0"]] as const) {
    const messages = chat(from, to);
    expect(blocksOf(messages, first).flatMap((block) => block.messages)).toEqual(messages);
  }
});

test("earlier and new messages leave the other blocks as they are", () => {
  const before = keys(chat(100, 200), "100");
  expect(before).toEqual(["100", "120", "140", "160", "180"]);
  expect(keys(chat(100, 206), "100")).toEqual([...before, "200"]);
  const earlier = keys(chat(60, 200), "100");
  expect(earlier.slice(-5)).toEqual(before);
  expect(keys(chat(0, 200), "100").slice(-7)).toEqual(earlier);
});

test("a block begins with a message of the reader", () => {
  const cards = [...chat(0, 1), ...Array.from({ length: BLOCK * 2 }, (_, index) => ({ id: `card ${index}`, role: "assistant", parts: [] }) as ChatMessage), ...chat(2, 4)];
  expect(keys(cards, "0")).toEqual(["0", "2"]);
});
