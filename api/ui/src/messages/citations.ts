// The passages that an answer cites: the text has their numbers as marks, such as `[1]`.
import type { Part } from "../chat/message";
import type { Citation } from "./cited";

/** Returns the citations of a message by their numbers; the first one with a number counts. */
export function citationsOf(parts: readonly Part[]): Citation[] {
  const found = new Map<number, Citation>();
  for (const part of parts) {
    const citation = part.type === "source-document" ? citationIn(part.providerMetadata?.holdfast, part.title) : undefined;
    if (citation && !found.has(citation.number)) found.set(citation.number, citation);
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
}

function citationIn(facts: Record<string, unknown> | undefined, title: string): Citation | undefined {
  const { number, id, page, start, end } = facts ?? {};
  if (typeof number !== "number" || typeof id !== "string" || typeof start !== "number" || typeof end !== "number") return undefined;
  return { number, documentId: id, title, ...(typeof page === "number" ? { page } : {}), start, end };
}
