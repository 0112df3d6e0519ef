// The shell reads more than the chat: once, and each time that its reader returns. An older server may not have it.
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useState } from "react";

/** Returns the newest value; undefined until the first one arrives. `read` must stay the same function. */
export function useRead<T>(isAllowed: boolean, read: () => Promise<T>): [T | undefined, () => void] {
  const [value, setValue] = useState<T>();
  const readAgain = useCallback(() => {
    if (isAllowed) void read().then(setValue, () => {});
  }, [isAllowed, read]);
  useEffect(() => {
    readAgain();
    return onWake(readAgain);
  }, [readAgain]);
  return [value, readAgain];
}
