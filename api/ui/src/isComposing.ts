// Whether a key belongs to an input method, such as an Enter that confirms a candidate.
import type { KeyboardEvent } from "react";

/** Safari ends the composition before the key that ends it; only the code 229 shows that. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.nativeEvent.isComposing || event.keyCode === 229;
}
