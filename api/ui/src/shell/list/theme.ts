// The theme is light, dark, or the system's; this browser keeps it, and the page applies it before its first paint.
import { useSyncExternalStore } from "react";

import { keep, read } from "../kept";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  const kept = read("theme");
  return themes.find((theme) => theme === kept) ?? "system";
}

export function applyTheme(): void {
  const theme = currentTheme();
  const root = document.documentElement;
  if (theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme);
}

export function chooseTheme(theme: Theme): void {
  keep("theme", theme === "system" ? undefined : theme);
  changed();
}

export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, currentTheme);
}

function changed() {
  applyTheme();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  // This tab also follows another tab's choice.
  if (listeners.size === 0) window.addEventListener("storage", changed);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.removeEventListener("storage", changed);
  };
}
