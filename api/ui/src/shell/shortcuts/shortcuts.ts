// This file maps key presses to the page's shortcuts. They are single letters, so that they collide with neither the
// browser's keys nor a screen reader's. They are off while the reader writes, and a setting turns them off altogether.

export type Command = "newChat" | "compose" | "search" | "next" | "previous" | "list" | "stop" | "copy" | "help";

/** The array has the order of the dialog. `key` is that of the keyboard event. */
export const shortcuts: { command: Command; key: string }[] = [
  { command: "newChat", key: "n" },
  { command: "compose", key: "c" },
  { command: "search", key: "s" },
  { command: "next", key: "j" },
  { command: "previous", key: "k" },
  { command: "list", key: "l" },
  { command: "copy", key: "y" },
  { command: "stop", key: "Escape" },
  { command: "help", key: "?" },
];

export type Press = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "isComposing">;

export function commandOf(press: Press, isWriting: boolean, withLetters: boolean): Command | undefined {
  if (isSearch(press)) return "search";
  if (press.ctrlKey || press.metaKey || press.altKey || press.isComposing) return undefined;
  const found = shortcuts.find(({ key }) => key === press.key || key === press.key.toLowerCase());
  if (!found) return undefined;
  if (isWriting) return undefined;
  return found.key === "Escape" || withLetters ? found.command : undefined;
}

/** Ctrl+K, or ⌘K, also while the reader writes. */
function isSearch({ key, ctrlKey, metaKey, altKey, isComposing }: Press): boolean {
  return key.toLowerCase() === "k" && ctrlKey !== metaKey && !altKey && !isComposing;
}

/** Whether a key pressed on the target is text, or chooses something. */
export function isWritingIn(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  return target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])");
}
