// Renders a long conversation from its end: the newest messages at once, the older ones a few at a time. The page
// therefore stays responsive meanwhile.
import { startTransition, useEffect, useState } from "react";

const AT_ONCE = 20;
const AT_A_TIME = 30;

/** Returns the index of the first message to render. */
export function useGradually(count: number): number {
  const [drawn, setDrawn] = useState(AT_ONCE);
  useEffect(() => {
    if (drawn >= count) {
      // From now on the page renders all messages, later ones included. An empty list still waits for its history.
      if (count > 0) setDrawn(Number.POSITIVE_INFINITY);
      return;
    }
    const timer = setTimeout(() => startTransition(() => setDrawn((drawn) => drawn + AT_A_TIME)), 30);
    return () => clearTimeout(timer);
  }, [drawn, count]);
  return Math.max(0, count - drawn);
}
