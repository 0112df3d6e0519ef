// The arrows lead from the search to the conversations, from one to the next, and back.
import type { KeyboardEvent } from "react";

const STEPS: Record<string, 1 | -1> = { ArrowDown: 1, ArrowUp: -1 };

/** Moves the focus within the list that has the event. Returns whether it has moved. */
export function moveFocus(event: KeyboardEvent<HTMLElement>): boolean {
  const step = STEPS[event.key];
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return false;
  const field = event.currentTarget.querySelector<HTMLElement>("[data-command=search]");
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>(".item a")];
  const at = event.target === field ? -1 : links.findIndex((link) => link === event.target);
  if (at < 0 && (event.target !== field || step < 0)) return false;
  const to = at + step < 0 ? field : links[at + step];
  to?.focus();
  event.preventDefault();
  return to !== undefined;
}
