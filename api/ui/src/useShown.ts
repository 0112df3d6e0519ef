// This hook gives a component the value of a `Shown`.
import { startTransition, useEffect, useState } from "react";

import type { Shown } from "./shown";

/** Another `shown` is another value. With `isLong`, a read of many rows does not hold up the reader's scrolling. */
export function useShown<T, C>(shown: Shown<T, C>, { isLong = false } = {}): T {
  const [seen, setSeen] = useState({ shown, value: shown.value });
  useEffect(() => {
    const see = () => {
      const { value } = shown;
      setSeen((before) => (before.shown === shown && before.value === value ? before : { shown, value }));
    };
    const stop = shown.subscribe((cause) => (isLong && cause === "read" ? startTransition(see) : see()));
    see();
    return stop;
  }, [shown, isLong]);
  return seen.shown === shown ? seen.value : shown.value;
}
