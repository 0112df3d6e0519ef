// A document may have millions of characters, so the page loads the part around a place, and more on demand. All places
// count Unicode scalar values, as the server does.
import type { Passage } from "../paths";

/** The page loads so many characters at a time. */
export const STEP = 16_000;

/** The page keeps so many loaded parts, and drops the farthest one. */
const MOST_PARTS = 6;

/** The reader sees so much of the text before a passage. */
const BEFORE = 3_000;

/** A loaded part of a text. */
export interface Part extends Passage {
  text: string;
}

/** Returns the place of the first part: it begins before the passage and has its beginning. */
export function firstPart(chars: number, passage?: Passage): Passage {
  const start = Math.max(0, Math.min(passage?.start ?? 0, chars) - BEFORE);
  return { start, end: Math.min(chars, start + STEP) };
}

/** Returns the place of the part before the loaded ones, if any. */
export function partBefore(parts: readonly Part[]): Passage | undefined {
  const end = parts[0]?.start ?? 0;
  return end > 0 ? { start: Math.max(0, end - STEP), end } : undefined;
}

/** Returns the place of the part after the loaded ones, if any. */
export function partAfter(parts: readonly Part[], chars: number): Passage | undefined {
  const start = parts.at(-1)?.end ?? 0;
  return start < chars ? { start, end: Math.min(chars, start + STEP) } : undefined;
}

/** Adds a loaded part at its end of the others. */
export function withPart(parts: readonly Part[], part: Part): Part[] {
  const isBefore = parts[0] !== undefined && part.end <= parts[0].start;
  return isBefore ? [part, ...parts].slice(0, MOST_PARTS) : [...parts, part].slice(-MOST_PARTS);
}

/** Returns the text of a part in pieces: before the passage, inside of it, after it; without empty ones. */
export function piecesOf({ start, text }: Part, passage: Passage | undefined): { text: string; isMarked: boolean }[] {
  if (!passage || passage.end <= start) return [{ text, isMarked: false }];
  const characters = [...text];
  const [from, to] = [passage.start - start, passage.end - start].map((place) => Math.min(characters.length, Math.max(0, place))) as [number, number];
  const pieces = [
    { text: characters.slice(0, from).join(""), isMarked: false },
    { text: characters.slice(from, to).join(""), isMarked: true },
    { text: characters.slice(to).join(""), isMarked: false },
  ];
  return pieces.filter((piece) => piece.text !== "");
}
