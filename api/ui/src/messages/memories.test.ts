import { expect, test } from "vitest";

import type { ChatMessage } from "../chat/message";
import { idsIn, memoriesOf } from "./memories";

test.each([
  ["a result", '{"left_out":0,"memories":[{"id":"a","version":1},{"id":"b","version":2}]}', ["a", "b"]],
  ["a parsed result", { memories: [{ id: "a", version: 1 }] }, ["a"]],
  ["an empty result", '{"left_out":0,"memories":[]}', []],
  ["another list", { memories: [null, 3, { id: 4 }] }, []],
  ["a text", "There is nothing.", []],
  ["nothing", null, []],
])("%s names its memories", (_, output, ids) => {
  expect(idsIn(output)).toEqual(ids);
});

test("an answer has the memories of its calls of recall, each once", () => {
  const call = (toolName: string, ids: string[], state = "output-available") => ({ type: "dynamic-tool", toolName, toolCallId: "c", state, output: { memories: ids.map((id) => ({ id, version: 1 })) } });
  const parts = [call("recall", ["a", "b"]), call("recall", ["b", "c"]), call("kb__recall", ["d"]), call("forget", ["e"]), call("recall", ["f"], "output-error")];
  expect(memoriesOf({ id: "m", role: "assistant", parts } as unknown as ChatMessage)).toEqual(["a", "b", "c"]);
});
