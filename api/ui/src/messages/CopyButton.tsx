// This button copies a text, and shows for a moment that it has.
import { useEffect, useState } from "react";

import { words } from "../i18n";
import { Icon } from "./icons";

export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(undefined), 1_600);
    return () => clearTimeout(timer);
  }, [outcome]);

  // Browsers offer no clipboard to a page from another machine without HTTPS.
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setOutcome("copied");
    } catch {
      setOutcome("failed");
    }
  };
  const name = outcome === "copied" ? words.message.copied : outcome === "failed" ? words.message.copyFailed : label;
  return (
    <button type="button" className="icon-button" aria-label={name} title={name} onClick={() => void copy()}>
      <Icon name={outcome === "copied" ? "check" : outcome === "failed" ? "cross" : "copy"} />
    </button>
  );
}
