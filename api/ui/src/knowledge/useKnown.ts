// This hook reads one collection or document, and again each time that the reader returns.
import { Problem } from "holdfast-client/problem";
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useMemo, useState } from "react";

import { noChanges } from "../changes";
import { Shown } from "../shown";
import { useShown } from "../useShown";

export interface Known<T> {
  value?: T;
  /** It does not exist, or belongs to another user. */
  isMissing: boolean;
  isFailed: boolean;
  readAgain(): void;
}

/** `read` must stay the same function. */
export function useKnown<T>(read: (id: string) => Promise<T>, id: string): Known<T> {
  const shown = useMemo(() => new Shown<T | undefined, never>(undefined, noChanges, (value) => value), [read, id]);
  const value = useShown(shown);
  const [failure, setFailure] = useState<"missing" | "failed">();
  const readAgain = useCallback(() => {
    shown.read(() => read(id), (_, value) => value).then(
      () => setFailure(undefined),
      (error: unknown) => setFailure(error instanceof Problem && (error.status === 404 || error.status === 400) ? "missing" : "failed"),
    );
  }, [shown, read, id]);
  useEffect(() => {
    readAgain();
    return onWake(readAgain);
  }, [readAgain]);
  return { value, isMissing: failure === "missing", isFailed: failure === "failed" && value === undefined, readAgain };
}
