// Draws what grows as often as can be afforded, so that the page is free for its reader however large that has become.
import { startTransition, useEffect, useRef, useState } from "react";

/** The newest value there was time to draw: for `rest` times as long as the last drawing took, nothing is drawn. */
export function usePaced<Value>(value: Value, rest: number): Value {
  const [shown, setShown] = useState(value);
  const freeAt = useRef(0);
  const begun = performance.now();

  useEffect(() => {
    const now = performance.now();
    freeAt.current = now + rest * (now - begun);
    // `begun` is that of the drawing which has brought this value.
  }, [shown]);

  useEffect(() => {
    if (value === shown) return;
    const timer = setTimeout(() => startTransition(() => setShown(value)), Math.max(0, freeAt.current - performance.now()));
    return () => clearTimeout(timer);
  }, [value, shown]);

  return shown;
}
