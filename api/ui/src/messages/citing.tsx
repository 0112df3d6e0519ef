// An answer with sources has links in place of its marks, and a list of its sources. The page loads this code with the
// first source.
import type { Part } from "../chat/message";
import type { Citation, Cited } from "./cited";
import { citationsOf } from "./citations";
import { Mark } from "./markdown/Mark";
import type { Marking } from "./markdown/Markdown";
import { marks } from "./markdown/marks";

export { Sources } from "./Sources";

export const marking: Marking = { plugins: [marks], components: { cite: ({ children }) => <Mark>{children}</Mark> } };

/** Returns the sources among the parts, and how the page shows one of them. */
export function citedBy(parts: readonly Part[], show: (citation: Citation) => void): Cited {
  return { byNumber: new Map(citationsOf(parts).map((citation) => [citation.number, citation])), show };
}
