import { expect, test } from "vitest";

import { commandOf, shortcuts, type Press } from "./shortcuts";

const press = (key: string, more: Partial<Press> = {}): Press => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  isComposing: false,
  ...more,
});

test("every shortcut has a command, and no key has two", () => {
  for (const { command, key } of shortcuts) expect(commandOf(press(key), false, true)).toBe(command);
  expect(new Set(shortcuts.map(({ key }) => key)).size).toBe(shortcuts.length);
});

test("a capital letter is an equal key", () => {
  expect(commandOf(press("N"), false, true)).toBe("newChat");
});

test.each([
  ["with Ctrl it is the browser's", press("n", { ctrlKey: true }), false, true],
  ["with Command it is the browser's", press("c", { metaKey: true }), false, true],
  ["with Alt it is a menu's", press("s", { altKey: true }), false, true],
  ["in an input method it is text", press("n", { isComposing: true }), false, true],
  ["Esc of an input method is its own", press("Escape", { isComposing: true }), true, true],
  ["while writing it is text", press("n"), true, true],
  ["a question mark can be text, too", press("?"), true, true],
  ["letters can be turned off", press("n"), false, false],
  ["other keys are none", press("q"), false, true],
])("%s", (_, key, isWriting, withLetters) => {
  expect(commandOf(key, isWriting, withLetters)).toBeUndefined();
});

test("Esc stops the answer without letters, and never while the reader writes", () => {
  expect(commandOf(press("Escape"), false, false)).toBe("stop");
  expect(commandOf(press("Escape"), true, false)).toBeUndefined();
});

test("Ctrl+K and ⌘K search, also while the reader writes and without letters", () => {
  expect(commandOf(press("k", { ctrlKey: true }), true, false)).toBe("search");
  expect(commandOf(press("K", { metaKey: true }), false, true)).toBe("search");
  expect(commandOf(press("k", { ctrlKey: true, altKey: true }), false, true)).toBeUndefined();
  expect(commandOf(press("k", { ctrlKey: true, metaKey: true }), false, true)).toBeUndefined();
});
