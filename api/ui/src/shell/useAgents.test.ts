import { expect, it } from "vitest";

import { chosenOf } from "./useAgents";

it("the agent that was chosen is kept until the list says that it is gone", () => {
  const agents = [{ id: "chef", name: "Chef" }];
  expect(chosenOf("chef", undefined)).toBe("chef");
  expect(chosenOf("chef", agents)).toBe("chef");
  expect(chosenOf("chef", [])).toBeUndefined();
  expect(chosenOf(undefined, agents)).toBeUndefined();
});
