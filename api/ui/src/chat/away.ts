// This file detects a reader that returns to the page after a while.
import { onWake } from "holdfast-client/wake";

/** After this long in the background, the chat may have changed much. */
const LONG_MS = 5_000;

/**
 * Calls the listener when the reader returns after a while, and when the network returns. Returns a function that stops
 * it.
 */
export function onReturn(listener: () => void): () => void {
  let leftAt = Infinity;
  const leave = () => {
    if (document.visibilityState === "hidden") leftAt = Date.now();
  };
  document.addEventListener("visibilitychange", leave);
  const stop = onWake((moment) => {
    if (moment === "online" || Date.now() - leftAt > LONG_MS) listener();
  });
  return () => {
    document.removeEventListener("visibilitychange", leave);
    stop();
  };
}
