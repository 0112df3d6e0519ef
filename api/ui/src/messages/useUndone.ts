// Whether what a run has changed is undone, from anywhere. The page reads it when the answer comes into sight.
import { type RefObject, useEffect, useState } from "react";

import { readUndoOfRun } from "../client/workspace";
import { onUndone } from "../workspace/news";

export function useUndone(runId: string | undefined, foot: RefObject<HTMLElement | null>): "unknown" | "undone" | "standing" {
  const [known, setKnown] = useState<"unknown" | "undone" | "standing">("unknown");
  useEffect(() => {
    if (runId === undefined || !foot.current) return;
    let newest = 0;
    const read = async () => {
      newest += 1;
      const mine = newest;
      // A server that cannot say it refuses a second undo.
      const set = await readUndoOfRun(runId).catch(() => null);
      if (mine === newest) setKnown(set === null ? "standing" : "undone");
    };
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry?.isIntersecting) return;
      observer.disconnect();
      void read();
    });
    observer.observe(foot.current);
    const stop = onUndone(() => void read());
    return () => {
      newest = Infinity;
      observer.disconnect();
      stop();
    };
  }, [runId, foot]);
  return known;
}
