// Somebody who comes back to the page after a while.
import { onWake } from "../client/wake";

/** After this long in the background, much may have happened. */
const LONG_MS = 5_000;

/** Calls when the page is looked at again after a while, and when the network is back; gives back how to end it. */
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
