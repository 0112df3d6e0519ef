import type { UIMessageChunk } from "ai";
import { expect, it } from "vitest";

import { merged } from "./merge.js";

it("merging joins only neighbouring pieces of one text, reasoning or call", () => {
  const text = (delta: string, id = "text"): UIMessageChunk => ({ type: "text-delta", id, delta });
  const input = (inputTextDelta: string, toolCallId: string): UIMessageChunk => ({ type: "tool-input-delta", toolCallId, inputTextDelta });
  const chunks: UIMessageChunk[] = [
    { type: "start-step" },
    text("a"),
    text("b"),
    text("c", "other"),
    { type: "reasoning-delta", id: "text", delta: "d" },
    { type: "reasoning-delta", id: "text", delta: "e" },
    input("1", "one"),
    input("2", "one"),
    input("3", "two"),
    { type: "finish-step" },
    text("f"),
  ];
  expect(merged(chunks)).toEqual([
    { type: "start-step" },
    text("ab"),
    text("c", "other"),
    { type: "reasoning-delta", id: "text", delta: "de" },
    input("12", "one"),
    input("3", "two"),
    { type: "finish-step" },
    text("f"),
  ]);
  expect(chunks).toHaveLength(11);
});
