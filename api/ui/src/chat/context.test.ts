import { expect, it } from "vitest";

import { verbatimFrom } from "./context";
import type { ChatMessage, Data } from "./message";

const said = (id: string): ChatMessage => ({ id, role: "user", parts: [{ type: "text", text: id }] });
const answer = (id: string, context?: Partial<Data["context"]>): ChatMessage => ({
  id,
  role: "assistant",
  parts: context ? [{ type: "data-context", data: { tokens: 1, budget: 2, compressed: true, ...context } }] : [],
});

it("verbatim reading begins where the newest answer that tells it says", () => {
  const messages = [said("q1"), answer("a1", { compressed: false }), said("q2"), answer("a2", { verbatim_from: "a1" }), said("q3"), answer("a3")];
  expect(verbatimFrom(messages)).toBe("a1");
  expect(verbatimFrom([...messages, answer("a4", { verbatim_from: "q2" })])).toBe("q2");
});

it("a message is found by the id that its client has chosen", () => {
  const context = { verbatim_from: "of-the-server", verbatim_from_client_id: "q2" };
  expect(verbatimFrom([said("q1"), answer("a1"), said("q2"), answer("a2", context)])).toBe("q2");
});

it("there is no line without older messages", () => {
  expect(verbatimFrom([])).toBeUndefined();
  expect(verbatimFrom([said("q1"), answer("a1", { verbatim_from: "q1" })])).toBeUndefined();
  expect(verbatimFrom([said("q1"), answer("a1", { compressed: false })])).toBeUndefined();
  expect(verbatimFrom([said("q9"), answer("a9", { verbatim_from: "not-loaded" })])).toBeUndefined();
});
