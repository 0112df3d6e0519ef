import { expect, test } from "vitest";

import { inOrder } from "./inOrder";

test("tasks run one after the other, also after a failed one", async () => {
  const run = inOrder();
  const log: string[] = [];
  const task = (name: string, ms: number) => async () => {
    log.push(`${name} begins`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    log.push(`${name} ends`);
    if (name === "a") throw new Error("the server is away");
  };
  run(task("a", 20));
  run(task("b", 1));
  await new Promise<void>((resolve) => run(async () => resolve()));
  expect(log).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});
