// The addresses of collections, documents and passages.
import { COLLECTIONS_PATH } from "./address";

/** A part of a document's text, in Unicode scalar values. */
export interface Passage {
  start: number;
  /** The place after the last character. */
  end: number;
}

export function collectionPath(id: string): string {
  return `${COLLECTIONS_PATH}/${encodeURIComponent(id)}`;
}

export function documentPath(id: string, passage?: Passage): string {
  const path = `${COLLECTIONS_PATH}/d/${encodeURIComponent(id)}`;
  return passage ? `${path}?start=${passage.start}&end=${passage.end}` : path;
}

/** Returns the passage that the query of an address names. */
export function passageIn(search: string): Passage | undefined {
  const fields = new URLSearchParams(search);
  const [start = NaN, end = NaN] = ["start", "end"].map((name) => (/^\d{1,9}$/.test(fields.get(name) ?? "") ? Number(fields.get(name)) : NaN));
  return start < end ? { start, end } : undefined;
}
