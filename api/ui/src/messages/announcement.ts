// What a screen reader is told of a conversation's progress.
import type { Progress } from "../chat/chat";
import type { Metadata } from "../chat/message";

const isAtWork = (progress: Progress) => progress === "submitted" || progress === "streaming";

/**
 * What one progress after another is worth saying: that an answer begins and ends, and nothing in between. `status` is how
 * the newest answer has ended; why one has failed is said where the reason is known.
 */
export function announcementOf(before: Progress, now: Progress, status?: Metadata["status"]): "answering" | "complete" | "stopped" | "waiting" | undefined {
  if (isAtWork(now)) return isAtWork(before) ? undefined : "answering";
  if (now === "waiting") return before === "waiting" ? undefined : "waiting";
  if (now !== "idle" || before === "loading" || before === "idle") return undefined;
  if (status === "cancelled") return "stopped";
  return isAtWork(before) && status !== "failed" ? "complete" : undefined;
}
