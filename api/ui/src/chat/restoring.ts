// This file restores a version of a message that an edit or another answer has superseded, or a later version.
import { restoreMessage } from "../client/server";
import type { LiveState } from "./liveState";
import type { Reading } from "./reading";

/**
 * Resolves when the page has read the history again. If it rejects with a `Problem`, the page reads the history, too.
 */
export async function restore(live: LiveState, reading: Reading, versionId: string): Promise<void> {
  const { conversationId } = live;
  // A restoration cancels the run that works or waits.
  if (conversationId === undefined || live.progress !== "idle") return;
  try {
    await restoreMessage(conversationId, versionId);
  } catch (error) {
    // The server may have restored it nevertheless, or another tab was first.
    live.tell();
    void reading.hear();
    throw error;
  }
  live.tell();
  await reading.hear();
}
