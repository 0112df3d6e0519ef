// This file parses JSON that a person has typed.

export type Read = { ok: true; value: unknown } | { ok: false; reason: "not JSON" | "not an object" };

/** Parses the input of a call, which is always an object. */
export function readInput(text: string): Read {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? { ok: true, value } : { ok: false, reason: "not an object" };
  } catch {
    return { ok: false, reason: "not JSON" };
  }
}

/** Parses an answer: JSON if it is an object or a list, else the typed text. */
export function readAnswer(text: string): unknown {
  const typed = text.trim();
  if (!/^[[{]/.test(typed)) return typed;
  try {
    return JSON.parse(typed) as unknown;
  } catch {
    return typed;
  }
}
