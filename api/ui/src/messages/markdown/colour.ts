// Loads what colours code, when the first code is seen, so that the page does not carry it from the start.
import type { ElementContent } from "hast";

/** The coloured pieces; undefined for a language that it does not know. */
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
