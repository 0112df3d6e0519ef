import { expect, test } from "vitest";

import { decodeNamedCharacterReference as decoded } from "./characters";

test("the decoder reads the names that texts use, and no others", () => {
  expect(["amp", "lt", "nbsp", "eacute", "apos"].map(decoded)).toEqual(["&", "<", "\u00a0", "é", "'"]);
  expect(["nothing", "constructor", ""].map(decoded)).toEqual([false, false, false]);
});
