// The problems that the page treats in its own way.
import type { Problem } from "holdfast-client/problem";

/** The run has failed, and the server gave no reason. */
export const RUN_FAILED = "run_failed";

/** Whether the server would take a shorter text. */
export function isTooLong({ code }: Problem): boolean {
  return code === "content_too_long" || code === "body_too_large";
}

/** Returns the most bytes that the server takes; its sentence names the number last. */
export function limitOf({ message }: Problem): number | undefined {
  const most = /at most (\d+)/.exec(message)?.[1];
  return most === undefined ? undefined : Number(most);
}
