// A click opens a conversation of the list. The second click of a double click adds nothing to the first: no other entry
// of the history, and the focus stays in the message field.
import type { MouseEvent } from "react";

type Click = Pick<MouseEvent, "button" | "ctrlKey" | "detail" | "metaKey" | "preventDefault" | "shiftKey">;

/** Returns the handlers of a link that opens its conversation in the page. A key press is a click without a count. */
export function opening(open: () => void) {
  return {
    onMouseDown: (event: Click) => {
      if (event.detail > 1 && isPlain(event)) event.preventDefault();
    },
    onClick: (event: Click) => {
      if (!isPlain(event)) return;
      event.preventDefault();
      if (event.detail <= 1) open();
    },
  };
}

/** Ctrl, Command, Shift and the middle button open another tab or window. */
function isPlain({ ctrlKey, metaKey, shiftKey, button }: Click): boolean {
  return !ctrlKey && !metaKey && !shiftKey && button === 0;
}
