import { expect, test } from "vitest";

import type { Memory } from "../client/memories";
import { linkToMemories, memoriesIn } from "./address";
import { found, lastDay } from "./found";

const memory = (id: string, text: string, agent = "alma"): Memory => ({
  id,
  agent,
  scope: "agent",
  text,
  version: 1,
  writer: "agent",
  created_at: "",
  updated_at: "",
  expires_at: null,
  source: { run_id: "", message_id: "", conversation_id: null },
});

const memories = [memory("1", "Likes PLUM cake"), memory("2", "Lives in Bonn", "otto"), memory("3", "Likes tea")];

test.each([
  ["", undefined, "123"],
  ["likes", undefined, "13"],
  ["  cake plum ", undefined, "1"],
  ["OTTO", undefined, "2"],
  ["coffee", undefined, ""],
  ["likes", new Set(["2", "3"]), "3"],
])("%o finds memories", (query, only, expected) => {
  expect(found(memories, query, only).map(({ id }) => id).join("")).toBe(expected);
});

test("a link names memories, and the page reads them back", () => {
  const link = new URL(linkToMemories(["1", "2"]), "http://x");
  expect([link.pathname, memoriesIn(link.hash)]).toEqual(["/memories", new Set(["1", "2"])]);
  expect([memoriesIn(""), memoriesIn("#")]).toEqual([undefined, undefined]);
});

test("a memory expires with the end of its last day", () => {
  expect(lastDay(null)).toBe("");
  expect(lastDay("2027-02-01T00:00:00.000Z")).toBe("2027-01-31");
  expect(lastDay("2027-02-01T12:00:00.000Z")).toBe("2027-02-01");
});
