// Which addresses in an answer become links. The model names them, so whatever is not plainly harmless stays text.

const SAFE = new Set(["http:", "https:", "mailto:"]);

/** The address if it may be linked: absolute, and of a scheme that runs nothing. Relative ones would lead into this page. */
export function safeAddress(address: string): string | undefined {
  try {
    const url = new URL(address);
    // A name and a password in front of the host are there to deceive.
    if (!SAFE.has(url.protocol) || url.username !== "" || url.password !== "") return undefined;
    return url.href;
  } catch {
    return undefined;
  }
}

/** What the footnotes of an answer are named by; the only anchors that an answer may link to. */
export const NOTE = "note-";

export function isNote(address: string): boolean {
  return address.startsWith(`#${NOTE}`);
}

/** Where a link leads, in short. */
export function hostOf(address: string): string {
  const url = new URL(address);
  return url.protocol === "mailto:" ? url.pathname : url.host;
}
