// This hook runs commands when the reader presses their keys.
import { useEffect, useLayoutEffect, useRef, useSyncExternalStore } from "react";

import { keep, read } from "../kept";
import { commandOf, isWritingIn, type Command } from "./shortcuts";

export function useShortcuts(commands: Partial<Record<Command, () => void>>): void {
  const current = useRef(commands);
  // A layout effect, because the next key can arrive before the browser paints.
  useLayoutEffect(() => {
    current.current = commands;
  });
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isWriting = isWritingIn(event.target);
      const isLeaving = isWriting && event.key === "Escape" && !event.isComposing;
      const command = commandOf(event, isWriting, areLettersOn());
      if ((!command && !isLeaving) || event.defaultPrevented) return;
      // An open dialog or menu has the keys. The search for one visits all messages, so it must not run for each letter.
      if (document.querySelector("dialog[open], :popover-open")) return;
      // Esc in a field leaves that field, and stops no answer.
      if (isLeaving) (event.target as HTMLElement).blur();
      if (!command) return;
      const run = current.current[command];
      if (!run) return;
      event.preventDefault();
      run();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

const listeners = new Set<() => void>();

/** A reader who speaks to the computer must be able to turn off single letters (WCAG 2.1.4). */
export function areLettersOn(): boolean {
  return read("letters") !== "off";
}

export function turnLetters(on: boolean): void {
  keep("letters", on ? undefined : "off");
  for (const listener of listeners) listener();
}

export function useLetters(): boolean {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, areLettersOn);
}
