// The browser keeps the unsaved texts of entities and memories over reloads, as it keeps drafts of messages.
import { keep, read, type Kept } from "../../shell/kept";

const KEPT_FOR_MS = 30 * 86_400_000;

export interface Unsaved {
  text: string;
  /** The text and the version that the writer has begun with. */
  base: string;
  version: number;
}

type All = Record<string, Unsaved & { at: number }>;

export function unsavedOf(name: string, storage?: Kept): Unsaved | undefined {
  return all(storage)[name];
}

/** Keeps the text, or forgets it. */
export function keepUnsaved(name: string, unsaved: Unsaved | undefined, storage?: Kept, now = Date.now()): void {
  const others = Object.fromEntries(Object.entries(all(storage)).filter(([other, { at }]) => other !== name && now - at < KEPT_FOR_MS));
  if (unsaved) others[name] = { ...unsaved, at: now };
  keep("texts", Object.keys(others).length > 0 ? JSON.stringify(others) : undefined, storage);
}

function all(storage?: Kept): All {
  try {
    const kept: unknown = JSON.parse(read("texts", storage) ?? "{}");
    return isAll(kept) ? kept : {};
  } catch {
    return {};
  }
}

function isAll(kept: unknown): kept is All {
  if (typeof kept !== "object" || kept === null) return false;
  return Object.values(kept).every((one) => typeof one?.text === "string" && typeof one?.base === "string" && typeof one?.version === "number" && typeof one?.at === "number");
}
