// A text of somebody's in a sentence of the page's: each keeps its own direction.

/** Between U+2068 (first strong isolate) and U+2069. */
export function apart(text: string): string {
  return `\u2068${text}\u2069`;
}
