// This hook counts down to a moment.
import { useEffect, useState } from "react";

/** Returns the whole seconds until `at`, which is in ms since the epoch. It returns 0 without `at`, and afterwards. */
export function useSecondsUntil(at: number | undefined): number {
  const [left, setLeft] = useState(() => secondsUntil(at));
  useEffect(() => {
    // The hook reads the clock and does not count ticks, because the browser does not wake background pages every
    // second.
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
