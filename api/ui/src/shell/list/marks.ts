// Finds the words of a search in a text, as the server does: each word anywhere, or a word that begins like it but for one
// typing error.

export type Piece = { text: string; isMarked: boolean };

/** The server forgives no error in a shorter word. */
const SHORTEST = 4;

/** The beginning and the end of a word in a text. */
export type Place = [start: number, end: number];

/** Returns the places of each word of the search that the text has. */
export function placesOf(text: string, query: string): Place[][] {
  const lower = text.toLowerCase();
  // A few letters have another length in lower case, and their positions would be wrong.
  if (lower.length !== text.length) return [];
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const places = words.map((word) => {
    const exact = allOf(lower, word);
    return exact.length > 0 ? exact : similarTo(lower, word);
  });
  return places.filter(({ length }) => length > 0);
}

/** Returns the text in pieces; those that the search has found are marked. */
export function marksOf(text: string, query: string): Piece[] {
  const isFound = new Array<boolean>(text.length).fill(false);
  for (const [start, end] of placesOf(text, query).flat()) isFound.fill(true, start, end);
  const pieces: Piece[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const last = pieces.at(-1);
    if (last?.isMarked === isFound[at]) last!.text += text[at];
    else pieces.push({ text: text[at]!, isMarked: isFound[at]! });
  }
  return pieces;
}

function allOf(text: string, word: string): Place[] {
  const places: Place[] = [];
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) places.push([at, at + word.length]);
  return places;
}

function similarTo(text: string, word: string): Place[] {
  if ([...word].length < SHORTEST) return [];
  const words = [...text.matchAll(/[\p{L}\p{N}]+/gu)];
  return words.filter(([found]) => beginsLike(found, word)).map(({ 0: found, index }) => [index, index + found.length]);
}

/** Whether a word begins like the wanted one with one error at most. */
export function beginsLike(found: string, wanted: string): boolean {
  let same = 0;
  while (same < wanted.length && found[same] === wanted[same]) same += 1;
  const [left, missing] = [found.slice(same), wanted.slice(same)];
  if (missing === "" || (left === "" && missing.length === 1)) return true;
  if (left === "") return false;
  const haveChangedPlaces = left.length > 1 && left[0] === missing[1] && left[1] === missing[0] && left.slice(2).startsWith(missing.slice(2));
  return haveChangedPlaces || left.slice(1).startsWith(missing.slice(1)) || left.startsWith(missing.slice(1)) || left.slice(1).startsWith(missing);
}
