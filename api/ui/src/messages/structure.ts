// This file finds the structure of a tool's input or output.

/** The page folds a value of more lines than this. */
const LINES = 16;

/** Parsing more characters than this would block the page. */
const PARSED_CHARACTERS = 200_000;

/**
 * Returns the object or the list: the value itself, or the content of a JSON text. It returns undefined for every other
 * value.
 */
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

/** Whether the value has more lines than the page shows at once. */
export function isFolded(value: object, lines = LINES): boolean {
  return JSON.stringify(value, null, 2).split("\n", lines + 1).length > lines;
}
