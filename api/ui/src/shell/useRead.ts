// The shell reads more than the chat: once, and each time that its reader returns. An older server may not have it.
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useState } from "react";

import { noChanges } from "../changes";
import { Shown } from "../shown";
import { useShown } from "../useShown";

/** Returns the newest value; undefined until the first one arrives. `read` must stay the same function. */
export function useRead<T>(isAllowed: boolean, read: () => Promise<T>): [T | undefined, () => void] {
  const [shown] = useState(() => new Shown<T | undefined, never>(undefined, noChanges, (value) => value));
  const value = useShown(shown);
  const readAgain = useCallback(() => {
    if (isAllowed) shown.read(read, (_, value) => value).catch(() => {});
  }, [isAllowed, read, shown]);
  useEffect(() => {
    readAgain();
    return onWake(readAgain);
  }, [readAgain]);
  return [value, readAgain];
}
