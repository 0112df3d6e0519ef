// This hook sends the answer to a question: one at a time, with a note if it did not count.
import { problemFrom } from "holdfast-client/problem";
import { useState } from "react";

import type { Outcome } from "../chat/chat";
import { words } from "../i18n";

export function useAnswer() {
  const [isSending, setSending] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  const [note, setNote] = useState<string>();

  // The card disappears with the message's next update; until then the reader cannot answer twice.
  const isBusy = isSending || outcome !== undefined;

  const send = async (answer: () => Promise<Outcome>) => {
    // The buttons only look disabled, because a disabled button loses the focus.
    if (isBusy) return;
    setSending(true);
    setNote(undefined);
    try {
      const outcome = await answer();
      setOutcome(outcome);
      if (outcome === "answered elsewhere") setNote(words.approval.elsewhere);
    } catch (error) {
      const { code, message } = problemFrom(error);
      // A browser's words for a lost connection help no reader, and are in one language.
      setNote(words.approval.failed(words.trouble.code[code] ?? message));
    } finally {
      setSending(false);
    }
  };
  return {
    isSending,
    isBusy,
    /** Whether this answer counts, or may count. */
    isOurs: isSending || outcome === "done",
    note,
    send,
  };
}
