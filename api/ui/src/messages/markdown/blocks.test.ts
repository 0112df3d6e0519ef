import { expect, test } from "vitest";

import { blocksOf, hasDefinitions, withoutDangling } from "./blocks";

const cuts: [name: string, text: string, blocks: string[]][] = [
  ["nothing is no block", "", []],
  ["blank lines alone are no block", "\n \n\n", []],
  ["each paragraph is a block", "one\n\ntwo\n\n\nthree\n", ["one", "two", "three"]],
  ["lines of a paragraph stay together", "one\ntwo", ["one\ntwo"]],
  ["a fence keeps its blank lines", "```js\na\n\nb\n```\n\nafter", ["```js\na\n\nb\n```", "after"]],
  ["an open fence reaches to the end", "before\n\n```\na\n\nb", ["before", "```\na\n\nb"]],
  ["a shorter fence does not close a longer one", "````\n```\n\n```\n````\n\nx", ["````\n```\n\n```\n````", "x"]],
  ["tildes do not close backticks", "```\n~~~\n\na\n```", ["```\n~~~\n\na\n```"]],
  ["a fence with a language does not close one", "```\na\n\n```js\nb\n```\n\nc", ["```\na\n\n```js\nb\n```", "c"]],
  ["code is a block apart from the lines around it", "so:\n```\na\n```\nand", ["so:", "```\na\n```", "and"]],
  ["code in an item stays there", "- a\n  ```\n  b\n  ```\n- c", ["- a\n  ```\n  b\n  ```\n- c"]],
  ["code in a line is no fence", "```a``` b\n\nc", ["```a``` b", "c"]],
  ["a loose list is one block", "- a\n\n- b\n\n1. c", ["- a\n\n- b\n\n1. c"]],
  ["an indented line belongs to the block before", "1. a\n\n   more\n\ntext", ["1. a\n\n   more", "text"]],
  ["a list after a paragraph is another block", "text\n\n- a", ["text", "- a"]],
  ["a formula keeps its blank lines", "$$\na\n\nb\n$$\n\nc", ["$$\na\n\nb\n$$", "c"]],
  ["a table ends at a blank line", "|a|b|\n|-|-|\n|1|2|\n\nx", ["|a|b|\n|-|-|\n|1|2|", "x"]],
];

test.each(cuts)("%s", (_, text, blocks) => expect(blocksOf(text)).toEqual(blocks));

test("the cut of a long list is between its items", () => {
  const item = `- ${"word ".repeat(100)}`;
  expect(blocksOf(Array(40).fill(item).join("\n\n")).length).toBeGreaterThan(3);
});

test("all blocks but the last two stay unchanged while text arrives", () => {
  const text = "# A\n\none\n\n- a\n- b\n\n```js\nlet x;\n\nlet y;\n```\n\n| a |\n|---|\n| 1 |\n\nend";
  let before: string[] = [];
  for (let length = 1; length <= text.length; length++) {
    const blocks = blocksOf(text.slice(0, length));
    const settled = Math.max(0, before.length - 2);
    expect(blocks.slice(0, settled)).toEqual(before.slice(0, settled));
    before = blocks;
  }
});

test("a long list without blank lines has cuts, too", () => {
  const blocks = blocksOf(Array(400).fill("- some words\n  - and more").join("\n"));
  expect(blocks.length).toBeGreaterThan(2);
  expect(blocks.every((block) => block.startsWith("- some"))).toBe(true);
});

test("the text's definitions count", () => {
  expect(hasDefinitions("see [a]\n\n[a]: https://example.org")).toBe(true);
  expect(hasDefinitions("word[^1]\n\n[^1]: a note")).toBe(true);
  expect(hasDefinitions("an [array]: no")).toBe(false);
});

test.each([
  ["text\n-", "text"],
  ["text\n==", "text"],
  ["text\n\n12.", "text\n"],
  ["text\n``", "text"],
  ["- a\n- b", "- a\n- b"],
  ["5", "5"],
  ["text\n```", "text\n```"],
])("the page hides the dangling end of %j", (text, shown) => expect(withoutDangling(text)).toBe(shown));
