// A date of the workspace is a day: its first moment in UTC. The page shows the same day in every time zone.

/** Returns the value of a date field: the day of a time in RFC 3339, or an empty text. */
export function dayOf(time: string | null | undefined): string {
  return time?.slice(0, 10) ?? "";
}

/** Returns the day for a reader, without the year if it is the current one. */
export function dayText(time: string, language: string, now = new Date()): string {
  const date = new Date(`${dayOf(time)}T00:00:00Z`);
  if (Number.isNaN(date.getTime())) return time;
  const year = date.getUTCFullYear() === now.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString(language, { day: "numeric", month: "short", year, timeZone: "UTC" });
}

/** Returns the reader's own day, with an offset in days. */
export function today(now = new Date(), days = 0): string {
  const day = new Date(Date.UTC(now.getFullYear(), now.getMonth(), now.getDate() + days));
  return day.toISOString().slice(0, 10);
}

/** Whether the day has passed for the reader. */
export function isPassed(time: string | null | undefined, now = new Date()): boolean {
  return time != null && dayOf(time) < today(now);
}
