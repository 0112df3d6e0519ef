// A screen reader hears how the uploads of a message go.
import type { Problem } from "holdfast-client/problem";

import type { Item } from "./tray";

export interface UploadWords {
  uploading(name: string): string;
  uploaded(name: string): string;
  notUploaded(name: string, reason: string): string;
  removed(name: string): string;
  reason: Record<string, string>;
  /** Why a file is refused, by the first half of its type. */
  refused: Record<string, string>;
}

/** Returns the sentence about the newest change, if any. */
export function announcementOf(words: UploadWords, before: readonly Item[], after: readonly Item[]): string | undefined {
  const changed = after.findLast(({ key, state }) => before.find((item) => item.key === key)?.state !== state);
  if (changed?.state === "failed") return words.notUploaded(changed.name, reasonOf(words, changed));
  if (changed) return changed.state === "ready" ? words.uploaded(changed.name) : words.uploading(changed.name);
  const gone = before.find(({ key }) => !after.some((item) => item.key === key));
  return gone && after.length > 0 ? words.removed(gone.name) : undefined;
}

/** Returns the page's sentence, or the server's own where the page has none. */
export function reasonOf(words: Pick<UploadWords, "reason" | "refused">, { problem, mediaType = "" }: { problem?: Problem; mediaType?: string }): string {
  if (problem?.code === "file_type_refused") return words.refused[mediaType.split("/")[0]!] ?? words.refused.other!;
  return (problem && Object.hasOwn(words.reason, problem.code) ? words.reason[problem.code] : problem?.message) ?? "";
}

/** Whether another try may succeed: a file that is too large stays so, and browsers do not read a changed one again. */
export function canHelp(problem: Problem | undefined): boolean {
  return !["file_too_large", "file_type_refused", "empty_file", "file_unreadable"].includes(problem?.code ?? "");
}
