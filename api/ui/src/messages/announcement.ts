// What a screen reader is told of a conversation's progress.
import type { Progress } from "../chat/chat";

const isAtWork = (progress: Progress) => progress === "submitted" || progress === "streaming";

/** What one progress after another is worth saying: that an answer begins and ends, and nothing in between. */
export function announcementOf(before: Progress, now: Progress): "answering" | "complete" | "waiting" | undefined {
  if (isAtWork(now)) return isAtWork(before) ? undefined : "answering";
  if (now === "waiting") return before === "waiting" ? undefined : "waiting";
  return now === "idle" && isAtWork(before) ? "complete" : undefined;
}
