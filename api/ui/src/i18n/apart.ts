// A reader's text stands inside a sentence of the page: each keeps its own direction.

/** Puts the text between U+2068 (first strong isolate) and U+2069. */
export function apart(text: string): string {
  return `\u2068${text}\u2069`;
}
