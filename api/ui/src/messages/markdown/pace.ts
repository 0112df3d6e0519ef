// Renders a growing value only as often as the page can afford, so that the page stays responsive however large the
// value is.
import { startTransition, useEffect, useRef, useState } from "react";

/** Returns the newest rendered value. After a render, the hook pauses for `rest` times that render's duration. */
export function usePaced<Value>(value: Value, rest: number): Value {
  const [shown, setShown] = useState(value);
  const freeAt = useRef(0);
  const startedAt = performance.now();

  useEffect(() => {
    const now = performance.now();
    freeAt.current = now + rest * (now - startedAt);
    // `startedAt` belongs to the render that has brought this value.
  }, [shown]);

  useEffect(() => {
    if (value === shown) return;
    const timer = setTimeout(() => startTransition(() => setShown(value)), Math.max(0, freeAt.current - performance.now()));
    return () => clearTimeout(timer);
  }, [value, shown]);

  return shown;
}
