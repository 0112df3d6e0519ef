// The text of a file's bytes, in the encoding that the server names.

/** Returns the text. `isCut` says that the bytes end before the file does, perhaps inside of a character. */
export function decoded(bytes: Uint8Array, contentType: string | null, isCut: boolean): string {
  for (const label of [markOf(bytes), charsetIn(contentType), "utf-8"]) {
    const text = label === undefined ? undefined : textIn(bytes, label, isCut);
    if (text !== undefined) return text;
  }
  // Every byte is a character there.
  return textIn(bytes, "windows-1252", isCut) ?? "";
}

/** Returns undefined for an encoding that the browser does not know, and for bytes that are not of it. */
function textIn(bytes: Uint8Array, label: string, isCut: boolean): string | undefined {
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes, { stream: isCut });
  } catch {
    return undefined;
  }
}

/** Returns the encoding that a mark at the beginning names. */
function markOf([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return first === 0xfe && second === 0xff ? "utf-16be" : undefined;
}

export function charsetIn(contentType: string | null): string | undefined {
  return /;\s*charset="?([^\s;"]+)/i.exec(contentType ?? "")?.[1];
}
