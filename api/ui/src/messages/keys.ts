// These keys end the writing of a text.
import type { KeyboardEvent } from "react";

import { isComposing } from "../isComposing";

/** Whether Enter breaks the line: an on-screen keyboard has no Shift+Enter, and the button beside the field sends. */
export const breaksLines = () => matchMedia("(hover: none) and (pointer: coarse)").matches;

/** Returns Enter alone, or Escape, if the reader means them for the page. */
export function endKey(event: KeyboardEvent): "enter" | "escape" | undefined {
  if (isComposing(event)) return undefined;
  if (event.key === "Escape") return "escape";
  return event.key === "Enter" && !event.shiftKey && !breaksLines() ? "enter" : undefined;
}

/** An element that Escape closes hides the key from the page, where Escape stops the run. */
export function onEscape(close: () => void) {
  return (event: KeyboardEvent) => {
    if (endKey(event) !== "escape") return;
    event.stopPropagation();
    close();
  };
}
