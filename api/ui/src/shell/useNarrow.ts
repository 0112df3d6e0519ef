// Whether the page is too small for the list to stand beside the chat.
import { useSyncExternalStore } from "react";

const narrow = matchMedia("(max-width: 799px)");

export function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      narrow.addEventListener("change", listener);
      return () => narrow.removeEventListener("change", listener);
    },
    () => narrow.matches,
  );
}
