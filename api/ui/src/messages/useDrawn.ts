// Draws a long conversation from its end: the newest blocks at once, a block that comes into sight or that the reader goes
// to as well, and the others one at a time, but all at once for paper. The page therefore stays responsive meanwhile.
import { startTransition, useCallback, useEffect, useState } from "react";

import type { Block } from "./blocks";
import { usePrinting } from "./usePrinting";

const PAUSE_MS = 30;

/** Returns whether a block is drawn, and a function that draws one now. `place` is the message that the reader goes to. */
export function useDrawn(blocks: Block[], place: string | undefined) {
  const [drawn, setDrawn] = useState<ReadonlySet<string>>(new Set());
  const draw = useCallback((key: string) => setDrawn((drawn) => new Set(drawn).add(key)), []);
  const isPrinting = usePrinting();
  const isDrawn = ({ key, messages }: Block, index: number) => isPrinting || index >= blocks.length - 2 || drawn.has(key) || (place !== undefined && messages.some(({ id }) => id === place));
  // The newest blocks have new messages, and stay drawn when others follow them.
  const next = blocks.findLast(({ key }) => !drawn.has(key))?.key;
  useEffect(() => {
    if (next === undefined) return;
    const timer = setTimeout(() => startTransition(() => draw(next)), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [next, draw]);
  return { isDrawn, draw };
}
