// This file makes every character of a text visible, as the terminal client does. It escapes characters that reverse
// text or have no width.

/**
 * The pattern matches control characters but line breaks and tabs, and format characters that hide or reverse their
 * neighbours.
 */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\ufeff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Each hidden character becomes `\uXXXX`, which has an equal meaning in JSON. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (character) => character.split("").map(escaped).join(""));
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
