import { describe, expect, it } from "vitest";

import type { ChatMessage } from "./message";
import { hasUnknownVerdicts, isWaiting, withOutcome, withVerdicts, withoutQuestions } from "./questions";

function answer(call: object, metadata: ChatMessage["metadata"] = {}): ChatMessage {
  const part = { type: "dynamic-tool", toolName: "scripted__approval", toolCallId: "call", input: {}, ...call };
  return { id: "answer", role: "assistant", metadata, parts: [{ type: "text", text: "Calling." }, part] } as ChatMessage;
}

const usage = { input_tokens: 1, output_tokens: 1, cached_tokens: 0, reasoning_tokens: 0 };

describe("a run waits", () => {
  it.each<[string, boolean, ChatMessage]>([
    ["for an approval", true, answer({ state: "approval-requested", approval: { id: "a" } })],
    ["for the page's own tool", true, answer({ state: "input-available" })],
    ["not for a call that a worker makes", false, answer({ state: "input-available", providerExecuted: true })],
    ["not for a call that the model writes", false, answer({ state: "input-streaming" })],
    ["not for an approved call", false, answer({ state: "approval-responded", approval: { id: "a", approved: true } })],
    ["not for an approval that another message replaced", false, answer({ state: "approval-requested", approval: { id: "a", approved: false } })],
    ["not when it has ended", false, answer({ state: "approval-requested", approval: { id: "a" } }, { usage })],
    ["not in a user message", false, { ...answer({ state: "input-available" }), role: "user" }],
  ])("%s", (_, waits, message) => expect(isWaiting(message)).toBe(waits));

  it("not without a message", () => expect(isWaiting(undefined)).toBe(false));
});

describe("a verdict", () => {
  const verdicts = new Map([["a", { approved: false, reason: "not now" }]]);

  it("closes the question", () => {
    const message = withVerdicts(answer({ state: "approval-requested", approval: { id: "a" } }), verdicts);
    expect(message.parts[1]).toMatchObject({ state: "approval-responded", approval: { id: "a", approved: false, reason: "not now" } });
    expect(isWaiting(message)).toBe(false);
  });

  it("stays beside the outcome", () => {
    const message = withVerdicts(answer({ state: "output-denied", approval: { id: "a" } }), verdicts);
    expect(message.parts[1]).toMatchObject({ state: "output-denied", approval: { approved: false } });
  });

  it("changes nothing else, not even the object", () => {
    for (const message of [answer({ state: "approval-requested", approval: { id: "b" } }), answer({ state: "output-available", approval: { id: "a", approved: true } })]) {
      expect(withVerdicts(message, verdicts)).toBe(message);
    }
  });

  it("is missing where an answered approval does not have it", () => {
    const answered = answer({ state: "output-available", approval: { id: "b" } });
    expect(hasUnknownVerdicts(answered, new Map())).toBe(true);
    expect(hasUnknownVerdicts(answered, new Map([["b", { approved: true }]]))).toBe(false);
    expect(hasUnknownVerdicts(answer({ state: "approval-requested", approval: { id: "b" } }), new Map())).toBe(false);
  });
});

it("a message instead of an answer closes the question", () => {
  const before = [answer({ state: "approval-requested", approval: { id: "a" } })];
  expect(withoutQuestions(before).at(-1)!.parts[1]).toMatchObject({ approval: { id: "a", approved: false } });
  expect(withoutQuestions([])).toEqual([]);
  const ended = [answer({ state: "output-available" })];
  expect(withoutQuestions(ended)).toBe(ended);
});

it("the reader's answer to a call is its outcome", () => {
  const messages = [answer({ state: "input-available" })];
  expect(withOutcome(messages, "call", { output: 5 })[0]!.parts[1]).toMatchObject({ state: "output-available", output: 5 });
  expect(withOutcome(messages, "call", { error: "no" })[0]!.parts[1]).toMatchObject({ state: "output-error", errorText: "no" });
  expect(withOutcome(messages, "other", { output: 5 })[0]).toBe(messages[0]);
});
