// Restoring a version of a message that an edit or another answer has superseded, or going forward again.
import { restoreMessage } from "../client/server";
import type { LiveState } from "./liveState";
import type { Reading } from "./reading";

/** Resolves when the page has read the history again. Rejects with a `Problem`, and the page reads the history then, too. */
export async function restore(live: LiveState, reading: Reading, versionId: string): Promise<void> {
  const { conversationId } = live;
  // A restoration cancels the run that is at work, or that waits.
  if (conversationId === undefined || live.progress !== "idle") return;
  try {
    await restoreMessage(conversationId, versionId);
  } catch (error) {
    // The server may have restored it all the same, or another tab was first.
    live.tell();
    void reading.hear();
    throw error;
  }
  live.tell();
  await reading.hear();
}
