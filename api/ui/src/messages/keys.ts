// The keys that end the writing of something.
import type { KeyboardEvent } from "react";

import { isComposing } from "../isComposing";

/** Enter alone, or Escape, which are meant for the page. */
export function endKey(event: KeyboardEvent): "enter" | "escape" | undefined {
  if (isComposing(event)) return undefined;
  if (event.key === "Escape") return "escape";
  return event.key === "Enter" && !event.shiftKey ? "enter" : undefined;
}

/** What is closed by Escape keeps it from the page, for which Escape is a stop. */
export function onEscape(close: () => void) {
  return (event: KeyboardEvent) => {
    if (endKey(event) !== "escape") return;
    event.stopPropagation();
    close();
  };
}
