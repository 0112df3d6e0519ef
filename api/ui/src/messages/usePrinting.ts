// Knows when the browser prints, so that the paper has what the screen leaves out.
import { useSyncExternalStore } from "react";
import { flushSync } from "react-dom";

let isPrinting = false;
const listeners = new Set<() => void>();

/** The browser takes its picture of the page right after the event, so the change must not wait. */
function tell({ type }: Event) {
  isPrinting = type === "beforeprint";
  flushSync(() => listeners.forEach((listener) => listener()));
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  // Adding the same function again has no effect.
  addEventListener("beforeprint", tell);
  addEventListener("afterprint", tell);
  return () => void listeners.delete(listener);
}

export function usePrinting(): boolean {
  return useSyncExternalStore(subscribe, () => isPrinting, () => false);
}
