// Where the focus goes when what had it is no longer there. Left alone it falls to the beginning of the page, and whoever has
// only a keyboard, or hears the page, has lost their place.
import { type RefObject, useLayoutEffect, useRef } from "react";

type Place = () => HTMLElement | null | undefined;

/** The message field; the messages themselves where a focus would bring a keyboard up over the page. */
export const messageField: Place = () => document.querySelector<HTMLElement>(matchMedia("(hover: hover)").matches ? "[data-command=compose]" : "[role=log]");

/** To a place that is there as soon as the page is drawn again, unless the reader has gone elsewhere meanwhile. */
export function refocus(place: Place): void {
  requestAnimationFrame(() => {
    const { activeElement, body } = document;
    if (activeElement && activeElement !== body) return;
    (place() ?? messageField())?.focus({ preventScroll: true });
  });
}

/** For what may go away by itself, with the focus in it: the focus goes to the place then. */
export function useRefocus<Gone extends HTMLElement>(place: Place): RefObject<Gone | null> {
  const element = useRef<Gone>(null);
  const newest = useRef(place);
  useLayoutEffect(() => {
    newest.current = place;
  });
  useLayoutEffect(() => {
    const gone = element.current;
    // It is still in the page then, and has its focus.
    return () => {
      if (gone?.contains(document.activeElement)) refocus(newest.current);
    };
  }, []);
  return element;
}
