import { expect, test } from "vitest";

import { messages } from "../i18n/en/messages";
import { isFailedCall, nowDoing, wasDone } from "./doing";
import type { Item } from "./segments";

const call = (toolName: string, state: string): Item =>
  ({ kind: "call", call: { type: "dynamic-tool", toolName, toolCallId: toolName, state, input: {}, errorText: "no", providerExecuted: true } }) as Item;
const thought: Item = { kind: "reasoning", text: "hm", isStreaming: false };
const { activity } = messages;

test.each([
  ["one call", [call("kb__search", "input-available")], "Calling search…"],
  ["one call that the model writes", [call("search", "input-streaming")], "Preparing search…"],
  ["two calls at once", [call("a", "input-available"), call("b", "input-streaming")], "Calling 2 tools…"],
  ["one call of two", [call("a", "output-available"), call("b", "input-available")], "Calling b…"],
])("the line of an active activity: %s", (_, items, line) => expect(nowDoing(activity, items, undefined)).toBe(line));

test.each([
  ["one call", [call("a", "output-available")], "Called a"],
  ["one call that has failed", [call("a", "output-error")], "a failed"],
  ["a thought and a call that has failed", [thought, call("a", "output-error")], "Thought · a failed"],
  ["two calls, of which one has failed", [call("a", "output-error"), call("b", "output-available")], "2 calls · 1 failed"],
  ["a thought", [thought], "Thought"],
])("the line of an ended activity: %s", (_, items, line) => expect(wasDone(activity, items, undefined)).toBe(line));

test("an activity fails only if it is a single failed call", () => {
  expect(isFailedCall([call("a", "output-error")])).toBe(true);
  expect(isFailedCall([thought, call("a", "output-error")])).toBe(false);
});
