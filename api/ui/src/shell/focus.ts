// The reader's shortcuts, and a newly opened chat, move the focus to a field of the page.

/** React must have rendered the target before. */
export function focusOn(command: "compose" | "search"): void {
  document.querySelector<HTMLElement>(`[data-command=${command}]`)?.focus();
}

/** Where a focus would open an on-screen keyboard over the page, the page leaves the field alone. */
export function focusOnField(): void {
  // React may not have rendered the field yet.
  if (matchMedia("(hover: hover)").matches) requestAnimationFrame(() => focusOn("compose"));
}
