// The text of a document around a place. The passage is marked and in sight, and buttons at both ends load more.
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

import { readText } from "../../client/knowledge";
import { words } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { useRefocus } from "../../refocus";
import type { Passage } from "../paths";
import { firstPart, type Part, partAfter, partBefore, piecesOf, withPart } from "./window";
import "./DocumentText.css";

type Props = {
  id: string;
  title: string;
  chars: number;
  passage?: Passage;
  /** Whether its lines are those of code. */
  isCode?: boolean;
};

export function DocumentText({ id, title, chars, passage, isCode }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [parts, setParts] = useState<readonly Part[]>([]);
  const [failed, setFailed] = useState<Passage>();
  /** The place of an element before a change, which must not move. */
  const held = useRef<{ start: number; top: number }>(undefined);
  const left = useRef(new AbortController());
  const isBusy = useRef(false);

  const load = useCallback(
    async ({ start, end }: Passage) => {
      if (isBusy.current) return;
      isBusy.current = true;
      setFailed(undefined);
      const { signal } = left.current;
      try {
        const text = await readText(id, start, end, { signal });
        const part = { start, end, text };
        setParts((before) => {
          held.current = holdIn(scroller.current, before, part);
          return withPart(before, part);
        });
      } catch {
        if (!signal.aborted) setFailed({ start, end });
      }
      if (!signal.aborted) isBusy.current = false;
    },
    [id],
  );
  const { start, end } = passage ?? {};
  useEffect(() => {
    left.current = new AbortController();
    isBusy.current = false;
    setParts([]);
    void load(firstPart(chars, passage));
    return () => left.current.abort();
    // Another passage is another place to begin.
  }, [load, chars, start, end]);

  useLayoutEffect(() => {
    const element = held.current && scroller.current?.querySelector(`[data-start="${held.current.start}"]`);
    if (element && scroller.current) scroller.current.scrollTop += element.getBoundingClientRect().top - held.current!.top;
    held.current = undefined;
  }, [parts]);
  const isThere = parts.length > 0;
  useEffect(() => {
    const mark = isThere ? scroller.current?.querySelector<HTMLElement>("mark") : undefined;
    mark?.scrollIntoView({ block: "center" });
    mark?.focus({ preventScroll: true });
  }, [isThere, start, end]);

  const before = partBefore(parts);
  const after = partAfter(parts, chars);
  const atText = () => scroller.current;
  return (
    <div ref={scroller} className="document-text" data-code={isCode || undefined} role="region" tabIndex={0} aria-label={texts.text.label(title)}>
      {isThere && before && <MoreButton text={texts.text.earlier} place={atText} onClick={() => void load(before)} />}
      {parts.map((part) => (
        <div key={part.start} data-start={part.start} className="document-part">
          {piecesOf(part, passage).map((piece, index) =>
            piece.isMarked ? (
              <mark key={index} tabIndex={-1} aria-label={texts.text.passage}>
                {piece.text}
              </mark>
            ) : (
              <span key={index}>{piece.text}</span>
            ),
          )}
        </div>
      ))}
      {!isThere && !failed && <div className="rest rest-loading" role="img" aria-label={texts.loading} />}
      {failed ? (
        <div className="rest" role="status">
          <p>{texts.unreachable}</p>
          <button type="button" className="button" onClick={() => void load(failed)}>
            {words.shell.retry}
          </button>
        </div>
      ) : (
        isThere && after && <MoreButton text={texts.text.later} place={atText} onClick={() => void load(after)} />
      )}
    </div>
  );
}

function MoreButton({ text, place, onClick }: { text: string; place(): HTMLElement | null; onClick(): void }) {
  const button = useRefocus<HTMLButtonElement>(place);
  return (
    <button ref={button} type="button" className="button document-more" onClick={onClick}>
      {text}
    </button>
  );
}

/** Returns the place of the loaded part next to the new one. */
function holdIn(scroller: HTMLElement | null, parts: readonly Part[], added: Part): { start: number; top: number } | undefined {
  const neighbour = parts.find(({ start, end }) => start === added.end || end === added.start);
  const element = neighbour && scroller?.querySelector(`[data-start="${neighbour.start}"]`);
  return element ? { start: neighbour.start, top: element.getBoundingClientRect().top } : undefined;
}
