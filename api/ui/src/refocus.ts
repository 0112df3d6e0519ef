// This file moves the focus when the focused element disappears. By default the browser moves it to the beginning of
// the page. A reader with a keyboard or a screen reader then loses their position.
import { type RefObject, useLayoutEffect, useRef } from "react";

type Place = () => HTMLElement | null | undefined;

/** Returns the message field, or the messages where a focus would open an on-screen keyboard over the page. */
export const messageField: Place = () => document.querySelector<HTMLElement>(matchMedia("(hover: hover)").matches ? "[data-command=compose]" : "[role=log]");

/** Moves the focus to an element that exists after the next render, unless the reader has moved it meanwhile. */
export function refocus(place: Place): void {
  requestAnimationFrame(() => {
    const { activeElement, body } = document;
    if (activeElement && activeElement !== body) return;
    (place() ?? messageField())?.focus({ preventScroll: true });
  });
}

/** Moves the focus to the given place when an element that may disappear by itself has it. */
export function useRefocus<Gone extends HTMLElement>(place: Place): RefObject<Gone | null> {
  const element = useRef<Gone>(null);
  const newest = useRef(place);
  useLayoutEffect(() => {
    newest.current = place;
  });
  useLayoutEffect(() => {
    const gone = element.current;
    // The element is still in the page then, and has its focus.
    return () => {
      if (gone?.contains(document.activeElement)) refocus(newest.current);
    };
  }, []);
  return element;
}
