import { expect, it } from "vitest";

import type { Metadata } from "../chat/message";
import { neighbourOf } from "./versions";

const neighbours = (metadata?: Metadata) => {
  const message = { id: "q", role: "user" as const, parts: [], metadata };
  return [neighbourOf(message, "previous"), neighbourOf(message, "next")];
};

it.each([
  [{ number: 1, count: 3, previous: null, next: "b" }, [undefined, "b"]],
  [{ number: 2, count: 3, previous: "a", next: "c" }, ["a", "c"]],
  [{ number: 3, count: 3, previous: "b", next: null }, ["b", undefined]],
])("a version has its neighbours before and after: %o", (version, expected) => expect(neighbours({ version })).toEqual(expected));

it.each([undefined, { status: "completed" as const }])("a message of one version has no neighbours: %o", (metadata) => {
  expect(neighbours(metadata)).toEqual([undefined, undefined]);
});
