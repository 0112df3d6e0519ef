// The page has these addresses: `/` is a new chat, `/c/{id}` a conversation, `/memories` lists what agents remember, `/w` and the
// addresses below it are the workspace, and `/k` and the addresses below it the collections of documents.
import { type KnowledgeView, parseKnowledge } from "../knowledge/address";
import { MEMORIES_PATH } from "../memories/address";
import { parseWorkspace, type WorkspaceView } from "../workspace/address";

export type Address =
  | { at: "new" }
  | { at: "conversation"; id: string }
  | { at: "workspace"; view: WorkspaceView }
  | { at: "memories" }
  | { at: "knowledge"; view: KnowledgeView }
  | { at: "nowhere" };

export function parseAddress(path: string, search = ""): Address {
  if (path === "/" || path === "" || path === "/index.html") return { at: "new" };
  if (path.replace(/\/$/, "") === MEMORIES_PATH) return { at: "memories" };
  const view = parseWorkspace(path);
  if (view) return { at: "workspace", view };
  const known = parseKnowledge(path, search);
  if (known) return { at: "knowledge", view: known };
  const id = /^\/c\/([^/]+)\/?$/.exec(path)?.[1];
  if (!id) return { at: "nowhere" };
  try {
    return { at: "conversation", id: decodeURIComponent(id) };
  } catch {
    // A percent sign begins no valid escape.
    return { at: "nowhere" };
  }
}

export function pathOf(id: string): string {
  return `/c/${encodeURIComponent(id)}`;
}

/** Returns the address of a message in its conversation. */
export function linkOf(id: string, messageId: string | undefined): string {
  return messageId === undefined ? pathOf(id) : `${pathOf(id)}#${encodeURIComponent(messageId)}`;
}

/** Returns the message that a link's fragment names. */
export function placeIn(hash: string): string | undefined {
  try {
    return decodeURIComponent(hash.slice(1)) || undefined;
  } catch {
    // A percent sign begins no valid escape.
    return undefined;
  }
}
