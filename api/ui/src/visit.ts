// The page goes to another of its addresses without a reload. The browser's back and forward buttons work, because each
// visit is an entry of the history.
import type { MouseEvent } from "react";

/** Goes to the path. `replace` leaves no entry for the address before. */
export function visit(path: string, { replace = false } = {}): void {
  if (location.pathname + location.search !== path) history[replace ? "replaceState" : "pushState"](null, "", path);
  // The page's own listener of back and forward opens the new address, too.
  window.dispatchEvent(new PopStateEvent("popstate"));
}

/** Follows a link inside the page. Ctrl, Command, Shift and the middle button open another tab or window, as always. */
export function follow(event: MouseEvent, path: string): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  visit(path);
}
