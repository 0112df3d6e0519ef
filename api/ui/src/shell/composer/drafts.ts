// The browser keeps a writer's drafts by conversation, over reloads.
import { keep, read, type Kept } from "../kept";

/** The draft of a chat without a first message has this name. */
export const NEW_CHAT = "new";

/** An unsent draft expires after this time, so that storage does not fill up. */
const KEPT_FOR_MS = 30 * 86_400_000;

type Drafts = Record<string, { text: string; at: number }>;

export function draftOf(conversation: string, storage?: Kept): string {
  return all(storage)[conversation]?.text ?? "";
}

/** Keeps the text; a blank text removes the draft. */
export function keepDraft(conversation: string, text: string, storage?: Kept, now = Date.now()): void {
  const drafts = Object.fromEntries(
    Object.entries(all(storage)).filter(([name, { at }]) => name !== conversation && now - at < KEPT_FOR_MS),
  );
  if (text.trim() !== "") drafts[conversation] = { text, at: now };
  keep("drafts", Object.keys(drafts).length > 0 ? JSON.stringify(drafts) : undefined, storage);
}

/** Keeps the text instead of another one, if storage still has the other one. */
export function replaceDraft(conversation: string, before: string, text: string, storage?: Kept): void {
  if (draftOf(conversation, storage) === before) keepDraft(conversation, text, storage);
}

/** Drafts belong to their writer. */
export function forgetDrafts(storage?: Kept): void {
  keep("drafts", undefined, storage);
  // The workspace keeps its unsaved texts under this name.
  keep("texts", undefined, storage);
}

/** Joins the two texts: the second below the first, if the first is not blank. */
export function joined(first: string, second: string): string {
  if (first.trim() === "") return second;
  if (second.trim() === "") return first;
  return `${first.trimEnd()}\n\n${second}`;
}

function all(storage?: Kept): Drafts {
  try {
    const kept: unknown = JSON.parse(read("drafts", storage) ?? "{}");
    return isDrafts(kept) ? kept : {};
  } catch {
    return {};
  }
}

function isDrafts(kept: unknown): kept is Drafts {
  if (typeof kept !== "object" || kept === null) return false;
  return Object.values(kept).every((draft) => typeof draft?.text === "string" && typeof draft?.at === "number");
}
