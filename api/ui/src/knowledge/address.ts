// The knowledge has these addresses: `/k` lists the collections, `/k/{collection}` is one of them, and
// `/k/d/{document}` is the text of a document, with a passage of it in its query (`paths.ts`).
import { decoded } from "../workspace/address";

export type KnowledgeView = { view: "collections" } | { view: "collection"; id: string } | { view: "document"; id: string; search: string };

export const COLLECTIONS_PATH = "/k";

/** Returns nothing for an address outside of the knowledge, and for one that the knowledge does not have. */
export function parseKnowledge(path: string, search: string): KnowledgeView | undefined {
  const [root, ...parts] = path.split("/").filter((part) => part !== "").map(decoded);
  if (root !== "k" || parts.includes(undefined) || parts.length > 2) return undefined;
  const [id, documentId] = parts as string[];
  if (id === undefined) return { view: "collections" };
  if (documentId === undefined) return { view: "collection", id };
  return id === "d" ? { view: "document", id: documentId, search } : undefined;
}
