import type { UIMessageChunk } from "ai";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { CAUGHT_UP, Past } from "./past.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const word: UIMessageChunk = { type: "text-delta", id: "t", delta: "word " };

function replay() {
  const given: UIMessageChunk[][] = [];
  const made = new Past((chunks) => given.push(chunks));
  const piece = (words: number) => {
    made.beginPiece();
    for (let n = 0; n < words; n += 1) made.push(word);
  };
  return { past: made, given, piece };
}

it("the past gives its chunks in one piece after a pause", () => {
  const { given, piece } = replay();
  piece(100);
  vi.advanceTimersByTime(20);
  piece(100);
  vi.advanceTimersByTime(20);
  expect(given).toEqual([]);
  vi.advanceTimersByTime(10);
  expect(given).toHaveLength(1);
  expect(given[0]).toHaveLength(201);
  expect(given[0]!.at(-1)!.type).toBe(CAUGHT_UP);
});

it("a slow first byte does not count as a long past", () => {
  const { given, piece } = replay();
  vi.advanceTimersByTime(3_000);
  piece(100);
  vi.advanceTimersByTime(20);
  piece(100);
  expect(given).toEqual([]);
  vi.advanceTimersByTime(30);
  expect(given[0]).toHaveLength(201);
});

it("the past gives its chunks after a limit even if more arrive", () => {
  const { past, given, piece } = replay();
  for (let ms = 0; ms < 600 && !past.isOver; ms += 20) {
    piece(100);
    vi.advanceTimersByTime(20);
  }
  expect(given).toHaveLength(1);
});

it("pieces as small as a model's end the past", () => {
  const { past, piece } = replay();
  piece(50);
  for (const words of [1, 1]) piece(words);
  expect(past.isOver).toBe(false);
  piece(1);
  expect(past.isOver).toBe(true);
});

it("an empty past gives nothing", () => {
  const { past, given } = replay();
  past.end();
  expect(given).toEqual([]);
});

it("a lost connection does not end the past: its chunks come with the later ones", () => {
  const { past, given, piece } = replay();
  piece(100);
  past.interrupt();
  vi.advanceTimersByTime(5_000);
  expect(given).toEqual([]);
  piece(100);
  vi.advanceTimersByTime(30);
  expect(given[0]).toHaveLength(201);
});

it("a connection that repeats only known chunks does not end the past, but a pause does", () => {
  const { past, given } = replay();
  past.push(word);
  past.interrupt();
  past.beginPiece();
  vi.advanceTimersByTime(30);
  expect(given[0]).toHaveLength(2);
});
