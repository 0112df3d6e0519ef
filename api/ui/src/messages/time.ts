// This file formats the time of a message: its age today, the day and clock time later, everything in the tooltip.

/** Returns the text beside a message. A reader whose clock is late never sees a time in the future. */
export function agoTime(at: Date, now: Date, language: string, words: { now: string; yesterday: string }): string {
  const minutes = Math.floor((now.getTime() - at.getTime()) / 60_000);
  if (minutes < 1) return words.now;
  if (dayOf(at) !== dayOf(now) && minutes >= 60) return shortTime(at, now, language, words.yesterday);
  const ago = new Intl.RelativeTimeFormat(language, { numeric: "always", style: "short" });
  return minutes < 60 ? ago.format(-minutes, "minute") : ago.format(-Math.floor(minutes / 60), "hour");
}

/** Returns the clock time, with the day if that is not today. */
export function shortTime(at: Date, now: Date, language: string, yesterday: string): string {
  const clock = at.toLocaleTimeString(language, { hour: "2-digit", minute: "2-digit" });
  const days = Math.round((dayOf(now) - dayOf(at)) / 86_400_000);
  if (days === 0) return clock;
  if (days === 1) return `${yesterday} ${clock}`;
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return `${at.toLocaleDateString(language, { day: "numeric", month: "short", year })} ${clock}`;
}

/** Returns the tooltip. */
export function fullTime(at: Date, language: string): string {
  return at.toLocaleString(language, { dateStyle: "full", timeStyle: "medium" });
}

/**
 * Returns the midnight of the day, to compare two days without their clock times; rounding compensates for summer time.
 */
function dayOf(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}
