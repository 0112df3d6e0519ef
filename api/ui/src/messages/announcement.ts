// This file chooses a screen reader's announcements of a conversation's progress.
import type { Progress } from "../chat/chat";
import type { Metadata } from "../chat/message";

const isAtWork = (progress: Progress) => progress === "submitted" || progress === "streaming";

/**
 * Returns the announcement for a change of progress: that an answer begins or ends, and nothing in between. `status` is
 * the newest answer's outcome. The component that shows a failure announces its reason.
 */
export function announcementOf(before: Progress, now: Progress, status?: Metadata["status"]): "answering" | "complete" | "stopped" | "waiting" | undefined {
  if (isAtWork(now)) return isAtWork(before) ? undefined : "answering";
  if (now === "waiting") return before === "waiting" ? undefined : "waiting";
  if (now !== "idle" || before === "loading" || before === "idle") return undefined;
  if (status === "cancelled") return "stopped";
  return isAtWork(before) && status !== "failed" ? "complete" : undefined;
}
