// This file decides which addresses in an answer become links. The model names them, so an address that is not plainly
// harmless stays text.

const SAFE = new Set(["http:", "https:", "mailto:"]);

/**
 * Returns the address if the page may link it: it is absolute, and its scheme runs nothing. Relative addresses would
 * lead into this page.
 */
export function safeAddress(address: string): string | undefined {
  try {
    const url = new URL(address);
    // A user name or a password before the host serves to deceive.
    if (!SAFE.has(url.protocol) || url.username !== "" || url.password !== "") return undefined;
    return url.href;
  } catch {
    return undefined;
  }
}

/** Every footnote's name begins with this; an answer may link to no other anchors. */
export const NOTE = "note-";

export function isNote(address: string): boolean {
  return address.startsWith(`#${NOTE}`);
}

/** Returns a short form of a link's target. */
export function hostOf(address: string): string {
  const url = new URL(address);
  return url.protocol === "mailto:" ? url.pathname : url.host;
}
