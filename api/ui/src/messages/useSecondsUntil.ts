// A countdown to a moment.
import { useEffect, useState } from "react";

/** The whole seconds until then, `at` in ms since the epoch; 0 without one, and when it has passed. */
export function useSecondsUntil(at: number | undefined): number {
  const [left, setLeft] = useState(() => secondsUntil(at));
  useEffect(() => {
    // By the clock and not by ticks, because the browser does not wake background pages every second.
    const count = () => setLeft(secondsUntil(at));
    count();
    if (at === undefined) return;
    const timer = setInterval(count, 500);
    return () => clearInterval(timer);
  }, [at]);
  return left;
}

function secondsUntil(at = 0): number {
  return Math.max(0, Math.ceil((at - Date.now()) / 1_000));
}
