// Draws a long conversation from its end: the newest messages at once, the older ones a few at a time, so that the page
// answers to the reader meanwhile.
import { startTransition, useEffect, useState } from "react";

const AT_ONCE = 20;
const AT_A_TIME = 30;

/** The index of the first message to draw. */
export function useGradually(count: number): number {
  const [drawn, setDrawn] = useState(AT_ONCE);
  useEffect(() => {
    if (drawn >= count) {
      // All of it is there; what comes from now on is drawn too. An empty list is one whose history has not come yet.
      if (count > 0) setDrawn(Number.POSITIVE_INFINITY);
      return;
    }
    const timer = setTimeout(() => startTransition(() => setDrawn((drawn) => drawn + AT_A_TIME)), 30);
    return () => clearTimeout(timer);
  }, [drawn, count]);
  return Math.max(0, count - drawn);
}
