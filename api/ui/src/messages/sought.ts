// Shows the words of a search in the message that it has found.
import { createContext, type RefObject, useEffect } from "react";

import { placesOf, type Place as Span } from "../shell/list/marks";

/** The message that the reader goes to, and the words of the search that has found it. */
export type Place = { messageId: string; words?: string };

/** The place of the found message, for its texts. */
export const Sought = createContext<Place | undefined>(undefined);

/** The style sheet colours the words by this name. */
const NAME = "found";

/** No match begins in one of these and ends in the next. */
const BLOCKS = "p, li, td, th, pre, blockquote, h3, h4, div";

/** These are the page's words, and not the message's. */
const OWN = ".unseen, .actions, .code-head, button";

/** Brings the first found word into the middle of the list, or the message if it has none. */
export function leadTo(message: Element, list: HTMLElement, words: string | undefined): void {
  const first = words && rangesIn(message, words).first;
  if (!first) return message.scrollIntoView({ block: "center" });
  // The word may be in code or in a table that scrolls by itself.
  first.startContainer.parentElement?.scrollIntoView({ block: "center" });
  const { top, height } = first.getBoundingClientRect();
  list.scrollTop += top + height / 2 - (list.getBoundingClientRect().top + list.clientHeight / 2);
}

/** Marks the words as long as the message is the found one, also in the text that it shows later. */
export function useMarks(list: RefObject<HTMLElement | null>, place: Place | undefined, isThere: boolean): void {
  useEffect(() => {
    const message = place?.words && list.current?.querySelector(`[data-id="${CSS.escape(place.messageId)}"]`);
    // A browser without it shows the place only.
    if (!message || !place?.words || !("highlights" in CSS)) return;
    const { words } = place;
    const mark = () => CSS.highlights.set(NAME, new Highlight(...rangesIn(message, words).all));
    mark();
    const changes = new MutationObserver(mark);
    changes.observe(message, { childList: true, characterData: true, subtree: true });
    return () => {
      changes.disconnect();
      CSS.highlights.delete(NAME);
    };
  }, [list, place, isThere]);
}

/** Returns all found words, and the first one of the word that the message has least often. */
function rangesIn(message: Element, words: string): { all: Range[]; first?: Range } {
  const { text, pieces } = textIn(message);
  const places = placesOf(text, words);
  const [rarest] = places.toSorted((one, other) => one.length - other.length);
  return { all: places.flat().map((span) => rangeOf(pieces, span)), first: rarest && rangeOf(pieces, rarest[0]!) };
}

type Piece = { node: Text; start: number };

/** Returns the message's text with a line break between two blocks, and where each node of it begins. */
function textIn(message: Element): { text: string; pieces: Piece[] } {
  const filter = (node: Node) => (node instanceof Element ? (node.matches(OWN) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP) : NodeFilter.FILTER_ACCEPT);
  const walker = document.createTreeWalker(message, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, filter);
  const pieces: Piece[] = [];
  let text = "";
  let block: Element | null | undefined;
  while (walker.nextNode()) {
    const node = walker.currentNode as Text;
    const its = node.parentElement?.closest(BLOCKS);
    if (text !== "" && its !== block) text += "\n";
    block = its;
    pieces.push({ node, start: text.length });
    // This letter is longer in lower case.
    text += node.data.replaceAll("İ", "I");
  }
  return { text, pieces };
}

function rangeOf(pieces: Piece[], [from, to]: Span): Range {
  const range = new Range();
  const first = pieces.findLast(({ start }) => start <= from)!;
  const last = pieces.findLast(({ start }) => start < to)!;
  range.setStart(first.node, from - first.start);
  range.setEnd(last.node, to - last.start);
  return range;
}
