import { describe, expect, it } from "vitest";

import type { ChatMessage } from "./message";
import { initially, progressOf, retryingOf, withAnswer, type State } from "./state";
import { newMessage } from "./utterance";

const known: State = { ...initially(true) };
const unsent = newMessage("more");
const question: ChatMessage = { id: "q", role: "user", parts: [] };
const answer: ChatMessage = { id: "a", role: "assistant", metadata: { runId: "run" }, parts: [] };
const asking = { ...answer, parts: [{ type: "tool-ask_user", toolCallId: "c", state: "input-available", input: {} }] } as ChatMessage;

describe("progress", () => {
  it.each([
    ["loading", initially(false), "ready", []],
    ["idle", known, "ready", [question, answer]],
    ["idle", known, "error", [question]],
    ["waiting", known, "ready", [question, asking]],
    ["submitted", { ...known, phase: "sending", unsent }, "ready", [question, asking]],
    ["idle", { ...known, unsent }, "error", [question, answer]],
    ["submitted", { ...known, phase: "streaming" }, "submitted", [question]],
    ["streaming", { ...known, phase: "streaming" }, "streaming", [question, answer]],
    ["streaming", { ...known, phase: "streaming" }, "streaming", [question, asking]],
    ["waiting", { ...known, phase: "resuming" }, "ready", [question, asking]],
    ["waiting", { ...known, phase: "resuming" }, "submitted", [question, asking]],
    ["submitted", { ...known, phase: "resuming" }, "ready", [question]],
    ["streaming", { ...known, phase: "resuming" }, "ready", [question, answer]],
  ] as const)("is %s", (progress, state, status, messages) => {
    expect(progressOf(state, { status, messages: [...messages] })).toBe(progress);
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
