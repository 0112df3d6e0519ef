// Loads the highlighter when the first code appears, so that the page does not carry it from the start.
import type { ElementContent } from "hast";

/** Returns the coloured pieces, or undefined for an unknown language. */
export type Highlight = (text: string, language: string) => ElementContent[] | undefined;

let loaded: Highlight | undefined;
let loading: Promise<Highlight> | undefined;

export function loadedHighlight(): Highlight | undefined {
  return loaded;
}

export function loadHighlight(): Promise<Highlight> {
  loading ??= import("./grammars").then(
    ({ highlight }) => (loaded = highlight),
    (error: unknown) => {
      loading = undefined;
      throw error;
    },
  );
  return loading;
}
