// When something was said: the clock time of today, the day as well of what is older, everything in the tooltip.

/** What stands beside a message. */
export function shortTime(at: Date, now: Date, language: string, yesterday: string): string {
  const clock = at.toLocaleTimeString(language, { hour: "2-digit", minute: "2-digit" });
  const days = Math.round((dayOf(now) - dayOf(at)) / 86_400_000);
  if (days === 0) return clock;
  if (days === 1) return `${yesterday} ${clock}`;
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return `${at.toLocaleDateString(language, { day: "numeric", month: "short", year })} ${clock}`;
}

/** The tooltip. */
export function fullTime(at: Date, language: string): string {
  return at.toLocaleString(language, { dateStyle: "full", timeStyle: "medium" });
}

/** The day's midnight: two days are compared by it, whatever the clock says; rounding takes care of summer time. */
function dayOf(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}
