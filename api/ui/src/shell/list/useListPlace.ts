// The list stands beside the chat, or in a drawer on a small page. The reader hides and shows it.
import { useCallback, useEffect, useState } from "react";

import { keep, read } from "../kept";
import { useNarrow } from "../useNarrow";

export interface ListPlace {
  /** Whether the page is too small for both. */
  isNarrow: boolean;
  isShown: boolean;
  show(isShown: boolean): void;
  closeDrawer(): void;
}

export function useListPlace(): ListPlace {
  const isNarrow = useNarrow();
  const [isBeside, setIsBeside] = useState(() => read("list") !== "hidden");
  const [isDrawerOpen, setIsDrawerOpen] = useState(false);
  const closeDrawer = useCallback(() => setIsDrawerOpen(false), []);
  useEffect(() => {
    if (!isNarrow) closeDrawer();
  }, [isNarrow, closeDrawer]);

  const show = (isShown: boolean) => {
    if (isNarrow) return setIsDrawerOpen(isShown);
    keep("list", isShown ? undefined : "hidden");
    setIsBeside(isShown);
  };
  return { isNarrow, isShown: isNarrow ? isDrawerOpen : isBeside, show, closeDrawer };
}
