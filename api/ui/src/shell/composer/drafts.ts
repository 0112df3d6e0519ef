// The browser keeps a writer's drafts by conversation, edited message or question, over reloads, and shares them between
// its tabs.
import { keep, read, tabStorage, type Kept } from "../kept";

/** The draft of a chat without a first message has this name. */
export const NEW_CHAT = "new";

/** An unsent draft expires after this time, so that storage does not fill up. */
const KEPT_FOR_MS = 30 * 86_400_000;

type Drafts = Record<string, { text: string; at: number }>;

/** Many messages look for the draft of their edit, and few have one: their names are not even in the stored text. */
export function draftOf(conversation: string, storage?: Kept): string {
  if (!read("drafts", storage)?.includes(JSON.stringify(conversation))) return "";
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

/**
 * The drafts as one tab has them. It replaces only a draft that it has read or written itself; beside the draft of
 * another tab, it keeps its own aside.
 */
export class TabDrafts {
  /** The shared drafts as this tab last read or wrote them. */
  readonly #seen = new Map<string, { text: string; isWritten: boolean }>();

  constructor(
    readonly shared?: Kept,
    readonly aside: () => Kept = tabStorage,
  ) {}

  read(conversation: string): string {
    const aside = draftOf(conversation, this.aside());
    if (aside !== "") return aside;
    const text = draftOf(conversation, this.shared);
    if (this.#seen.get(conversation)?.text !== text) this.#seen.set(conversation, { text, isWritten: false });
    return text;
  }

  keep(conversation: string, text: string): void {
    const shared = draftOf(conversation, this.shared);
    const isFree = ["", text, this.#seen.get(conversation)?.text].includes(shared);
    if (!isFree) this.#seen.delete(conversation);
    else if (text !== shared) {
      keepDraft(conversation, text, this.shared);
      this.#seen.set(conversation, { text: draftOf(conversation, this.shared), isWritten: true });
    }
    keepDraft(conversation, isFree ? "" : text, this.aside());
  }

  /** Keeps the text instead of another one, if the tab still has the other one. */
  replace(conversation: string, before: string, text: string): void {
    const [aside, shared] = [this.aside(), this.shared].map((storage) => draftOf(conversation, storage));
    if ((aside || shared) === before) this.keep(conversation, text);
  }

  /** Keeps aside what this tab has written and another tab has replaced. A draft that was sent there is none any more. */
  yield = (): void => {
    for (const [conversation, { text, isWritten }] of this.#seen) {
      const shared = draftOf(conversation, this.shared);
      if (!isWritten || shared === "" || shared === text) continue;
      keepDraft(conversation, text, this.aside());
      this.#seen.delete(conversation);
    }
  };

  /** Adds the draft of a chat that is gone to another one. */
  move(from: string, to: string): void {
    this.keep(to, joined(this.read(to), this.read(from)));
    this.keep(from, "");
  }

  forgetAside(): void {
    forgetDrafts(this.aside());
    this.#seen.clear();
  }
}

export const tabDrafts = new TabDrafts();

/** Drafts belong to their writer. */
export function forgetDrafts(storage?: Kept): void {
  keep("drafts", undefined, storage);
  // The workspace and the memories keep their unsaved texts under this name.
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
