// The structure of a tool's input or output.

/** Above so many lines, a value is folded. */
const LINES = 16;

/** Parsing more than this would hold up the page. */
const PARSED_CHARACTERS = 200_000;

/** The object or the list: itself, or what a text of JSON says. Undefined for everything else. */
export function structureIn(value: unknown): object | undefined {
  if (typeof value === "object" && value !== null) return value;
  if (typeof value !== "string" || value.length > PARSED_CHARACTERS || !/^\s*[[{]/.test(value)) return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return typeof parsed === "object" && parsed !== null ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Whether it has more lines than are shown at once. */
export function isFolded(value: object, lines = LINES): boolean {
  return JSON.stringify(value, null, 2).split("\n", lines + 1).length > lines;
}
