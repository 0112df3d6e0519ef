// Completes half of what the model is writing, so that it is not seen to turn from signs into what they mean. What does it is
// loaded when something is written for the first time; until it is there, the signs are seen.
import type remend from "remend";

const OPTIONS = { katex: false, inlineKatex: false, linkMode: "text-only", images: false, htmlTags: false, comparisonOperators: false } as const;

let loaded: typeof remend | undefined;
let loading: Promise<void> | undefined;

export function completed(text: string): string {
  loading ??= import("remend").then(
    (module) => {
      loaded = module.default;
    },
    () => {
      loading = undefined;
    },
  );
  return loaded ? loaded(text, OPTIONS) : text;
}
