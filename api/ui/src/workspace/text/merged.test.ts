import { expect, test } from "vitest";

import { merged } from "./merged";

test.each([
  ["one text has not changed", "a\nb", "a\nb", "a\nc", "a\nc"],
  ["the other text has not changed", "a\nb", "a\nc", "a\nb", "a\nc"],
  ["both changes are equal", "a", "b", "b", "b"],
  ["the changes are in different lines", "a\nb\nc\nd", "A\nb\nc\nd", "a\nb\nc\nD", "A\nb\nc\nD"],
  ["the other change is above", "a\nb\nc\nd", "a\nb\nc\nD", "A\nb\nc\nd", "A\nb\nc\nD"],
  ["both have added at the end", "a", "a\nmine", "a\ntheirs", "a\nmine\ntheirs"],
  ["both have changed one line", "a\nb\nc", "a\nmine\nc", "a\ntheirs\nc", "a\nmine\ntheirs\nc"],
  ["there was no text before", "", "mine", "theirs", "mine\ntheirs"],
])("nothing is lost when %s", (_, base, mine, theirs, result) => {
  expect(merged(base, mine, theirs)).toBe(result);
});
