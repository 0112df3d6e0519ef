// Truncates a long text until the reader asks for all of it, prints it, or searches for
// a word of it.
import { useContext, useState } from "react";

import { words } from "../i18n";
import { placesOf } from "../shell/list/marks";
import { Sought } from "./sought";
import { usePrinting } from "./usePrinting";

const CHARACTERS = 1_600;
const LINES = 24;

export function LongText({ text, messageId, isCode = false }: { text: string; messageId?: string; isCode?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const isPrinting = usePrinting();
  const start = startOf(text);
  const isLong = start.length < text.length;
  const sought = useContext(Sought);
  const [led, setLed] = useState<typeof sought>();
  if (sought !== led) {
    setLed(sought);
    if (isLong && sought?.words && sought.messageId === messageId && placesOf(text.slice(start.length), sought.words).length > 0) setWhole(true);
  }
  const shown = isWhole || isPrinting || !isLong ? text : `${start}…`;
  return (
    <>
      {isCode ? (
        <pre className="plain" dir="auto" tabIndex={0} role="group">
          {shown}
        </pre>
      ) : (
        <p className="plain" dir="auto">
          {shown}
        </p>
      )}
      {isLong && (
        <button type="button" className="quiet-button" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? words.message.showLess : words.message.showAll}
        </button>
      )}
    </>
  );
}

/**
 * Returns the part of a text that the page shows at first. It returns all of a slightly longer text, because a button
 * for two more lines is a nuisance.
 */
export function startOf(text: string): string {
  const lines = text.split("\n", LINES + 1);
  if (lines.length > LINES && text.split("\n", LINES + 7).length > LINES + 6) return clip(lines.slice(0, LINES).join("\n"));
  return text.length > CHARACTERS + 400 ? clip(text) : text;
}

/** Truncates the text, but never between the two halves of one character. */
function clip(text: string): string {
  return text.length > CHARACTERS ? text.slice(0, CHARACTERS).replace(/[\uD800-\uDBFF]$/, "") : text;
}
