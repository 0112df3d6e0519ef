// Sending the answer to a question: once at a time, and with a word about it where it did not count.
import { useState } from "react";

import type { Outcome } from "../chat/chat";
import { words } from "../i18n";

export function useAnswer() {
  const [isSending, setSending] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  const [note, setNote] = useState<string>();

  // The card goes when the message says so; until then it cannot be answered twice.
  const isBusy = isSending || outcome !== undefined;

  const send = async (answer: () => Promise<Outcome>) => {
    // The buttons only look disabled, because one that is loses the focus.
    if (isBusy) return;
    setSending(true);
    setNote(undefined);
    try {
      const outcome = await answer();
      setOutcome(outcome);
      if (outcome === "answered elsewhere") setNote(words.approval.elsewhere);
    } catch (error) {
      setNote(words.approval.failed(error instanceof Error ? error.message : String(error)));
    } finally {
      setSending(false);
    }
  };
  return {
    isSending,
    isBusy,
    /** Whether it is this answer that counts, or may be. */
    isOurs: isSending || outcome === "done",
    note,
    send,
  };
}
