// The trays of unsent messages, by the name of their draft. The browser keeps the uploaded files over reloads.
import type { FileRef } from "../client/files";
import { keep, read, type Kept } from "../shell/kept";
import { forgetPreviews } from "./previews";
import { Tray } from "./tray";

/** The server deletes a file that no message has after this time. */
const KEPT_FOR_MS = 86_400_000;

const open = new Map<string, Tray>();

/** Returns the tray of a draft, with the files that the browser has kept for it. */
export function trayOf(draft: string, except: readonly FileRef[] = []): Tray {
  const tray = open.get(draft) ?? new Tray();
  open.set(draft, tray);
  tray.put(filesOfDraft(draft).filter(({ id }) => !except.some((file) => file.id === id)));
  return tray;
}

/** A new chat gets the name of its conversation, and its tray with it. */
export function renameTray(from: string, to: string): void {
  const tray = open.get(from);
  if (!tray) return;
  open.delete(from);
  open.set(to, tray);
}

/** Adds the uploaded files of a chat that is gone to the draft of another one. */
export function moveFiles(from: string, to: string, storage?: Kept): void {
  keepFiles(to, [...filesOfDraft(to, storage), ...filesOfDraft(from, storage)], storage);
  keepFiles(from, [], storage);
}

/** Trays belong to their writer. */
export function forgetTrays(): void {
  open.forEach((tray) => tray.abandon());
  open.clear();
  forgetPreviews();
  keep("files", undefined);
}

type Files = Record<string, { files: FileRef[]; at: number }>;

export function filesOfDraft(draft: string, storage?: Kept, now = Date.now()): FileRef[] {
  return all(storage, now)[draft]?.files ?? [];
}

export function keepFiles(draft: string, files: readonly FileRef[], storage?: Kept, now = Date.now()): void {
  const kept = all(storage, now);
  if (files.length === 0 && !Object.hasOwn(kept, draft)) return;
  delete kept[draft];
  if (files.length > 0) kept[draft] = { files: [...files], at: now };
  keep("files", Object.keys(kept).length > 0 ? JSON.stringify(kept) : undefined, storage);
}

/** Forgets files that a message has, in the draft that its writer has left. */
export function dropFiles(draft: string, files: readonly FileRef[], storage?: Kept): void {
  keepFiles(draft, filesOfDraft(draft, storage).filter(({ id }) => !files.some((file) => file.id === id)), storage);
  open.get(draft)?.drop(files);
}

function all(storage: Kept | undefined, now: number): Files {
  try {
    const kept: unknown = JSON.parse(read("files", storage) ?? "{}");
    return isFiles(kept) ? Object.fromEntries(Object.entries(kept).filter(([, { at }]) => now - at < KEPT_FOR_MS)) : {};
  } catch {
    return {};
  }
}

function isFiles(kept: unknown): kept is Files {
  if (typeof kept !== "object" || kept === null) return false;
  return Object.values(kept).every((draft) => Array.isArray(draft?.files) && typeof draft?.at === "number");
}
