// This hook returns the current time for views that show an age, and renders them again at intervals.
import { useSyncExternalStore } from "react";

const EVERY_MS = 20_000;

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let ticks = 0;

function tick() {
  ticks += 1;
  listeners.forEach((listener) => listener());
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) timer = setInterval(tick, EVERY_MS);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearInterval(timer);
  };
}

export function useNow(): Date {
  useSyncExternalStore(subscribe, () => ticks);
  return new Date();
}
