// The page's addresses: `/` is a new chat, `/c/{id}` a conversation.

export type Address = { at: "new" } | { at: "conversation"; id: string } | { at: "nowhere" };

export function parseAddress(path: string): Address {
  if (path === "/" || path === "" || path === "/index.html") return { at: "new" };
  const id = /^\/c\/([^/]+)\/?$/.exec(path)?.[1];
  if (!id) return { at: "nowhere" };
  try {
    return { at: "conversation", id: decodeURIComponent(id) };
  } catch {
    // A percent sign that begins nothing.
    return { at: "nowhere" };
  }
}

export function pathOf(id: string): string {
  return `/c/${encodeURIComponent(id)}`;
}

/** The address of a message in its conversation. */
export function linkOf(id: string, messageId: string | undefined): string {
  return messageId === undefined ? pathOf(id) : `${pathOf(id)}#${encodeURIComponent(messageId)}`;
}

/** The message that a link's fragment names. */
export function placeIn(hash: string): string | undefined {
  try {
    return decodeURIComponent(hash.slice(1)) || undefined;
  } catch {
    // A percent sign that begins nothing.
    return undefined;
  }
}
