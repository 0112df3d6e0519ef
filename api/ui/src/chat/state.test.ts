import { describe, expect, it } from "vitest";

import type { ChatMessage } from "./message";
import { initially, progressOf, retryingOf, withAnswer, type State } from "./state";

const known: State = { ...initially(true) };
const question: ChatMessage = { id: "q", role: "user", parts: [] };
const answer: ChatMessage = { id: "a", role: "assistant", metadata: { runId: "run" }, parts: [] };
const asking = { ...answer, parts: [{ type: "tool-ask_user", toolCallId: "c", state: "input-available", input: {} }] } as ChatMessage;

describe("progress", () => {
  it.each([
    ["loading", initially(false), "ready", []],
    ["idle", known, "ready", [question, answer]],
    ["idle", known, "error", [question]],
    ["submitted", known, "submitted", [question]],
    ["streaming", known, "streaming", [question, answer]],
    ["waiting", known, "ready", [question, asking]],
    ["streaming", known, "streaming", [question, asking]],
    ["submitted", { ...known, unsent: { text: "more", isUnderway: true } }, "ready", [question, asking]],
    ["idle", { ...known, unsent: { text: "more", isUnderway: false } }, "error", [question, answer]],
    ["waiting", { ...known, isResuming: true }, "ready", [question, asking]],
    ["waiting", { ...known, isResuming: true }, "submitted", [question, asking]],
    ["submitted", { ...known, isResuming: true }, "ready", [question]],
    ["streaming", { ...known, isResuming: true }, "ready", [question, answer]],
  ] as const)("is %s", (progress, state, status, messages) => {
    expect(progressOf(state, status, [...messages])).toBe(progress);
  });
});

it("a first crash makes the second try", () => {
  expect(retryingOf({ attempt: 4, base: "1-2", crashes: 1, maxCrashes: 3 })).toEqual({ attempt: 2, of: 3 });
  expect(retryingOf({ attempt: 4, base: "1-2" })).toBeUndefined();
  expect(retryingOf(undefined)).toBeUndefined();
});

describe("a history that the page reads during an answer", () => {
  it("gets the answer as the page showed it", () => expect(withAnswer([question], [question, answer], "run")).toEqual([question, answer]));
  it("does not get it twice", () => expect(withAnswer([question, answer], [question, answer], "run")).toEqual([question, answer]));
  it("does not get another run's answer", () => expect(withAnswer([question], [question, answer], "other")).toEqual([question]));
});
