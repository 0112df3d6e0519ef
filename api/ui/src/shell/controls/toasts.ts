// Any part of the shell can show these short notices at the page's foot. A notice that offers an action stays until its
// time is over.
import { useSyncExternalStore } from "react";

export type Toast = { id: number; text: string; action?: { label: string; run: () => void }; forMs: number };

const SHOWN_FOR_MS = 4_000;

let toasts: readonly Toast[] = [];
let newest = 0;
const listeners = new Set<() => void>();

/** Shows a notice, and returns a function that removes it. */
export function showToast(text: string, action?: Toast["action"], forMs = SHOWN_FOR_MS): () => void {
  const id = ++newest;
  const dismiss = () => {
    clearTimeout(timer);
    set(toasts.filter((toast) => toast.id !== id));
  };
  const timer = setTimeout(dismiss, forMs);
  const run = action && { label: action.label, run: () => (dismiss(), action.run()) };
  set([...toasts, { id, text, action: run, forMs }]);
  return dismiss;
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(subscribe, () => toasts);
}

function set(next: readonly Toast[]) {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
