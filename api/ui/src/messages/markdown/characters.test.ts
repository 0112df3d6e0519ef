import { expect, test } from "vitest";

import { decodeNamedCharacterReference as decoded } from "./characters";

test("names that texts have are read, and no others", () => {
  expect(["amp", "lt", "nbsp", "eacute", "apos"].map(decoded)).toEqual(["&", "<", "\u00a0", "é", "'"]);
  expect(["nothing", "constructor", ""].map(decoded)).toEqual([false, false, false]);
});
