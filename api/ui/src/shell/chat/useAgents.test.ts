import { expect, it } from "vitest";

import { chosenOf } from "./useAgents";

it("the page keeps the chosen agent until the list no longer has it", () => {
  const agents = [{ id: "chef", name: "Chef" }];
  expect(chosenOf("chef", undefined)).toBe("chef");
  expect(chosenOf("chef", agents)).toBe("chef");
  expect(chosenOf("chef", [])).toBeUndefined();
  expect(chosenOf(undefined, agents)).toBeUndefined();
});
