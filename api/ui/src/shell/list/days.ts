// This file assigns a conversation to a group of the list: by the reader's own days, not by spans of 24 hours.

export type Group = { key: "today" | "yesterday" | "week" | "month" } | { key: "older"; year: number; month: number };

export function groupOf(time: Date, now: Date): Group {
  const days = daysBetween(time, now);
  // A clock that is late compared with the server's puts the newest message into the future.
  if (days <= 0) return { key: "today" };
  if (days === 1) return { key: "yesterday" };
  if (days < 7) return { key: "week" };
  if (days < 30) return { key: "month" };
  return { key: "older", year: time.getFullYear(), month: time.getMonth() };
}

/** Splits a list that is sorted by time, newest first, where the group changes. */
export function grouped<T>(items: T[], timeOf: (item: T) => Date, now: Date): { group: Group; items: T[] }[] {
  const groups: { group: Group; items: T[] }[] = [];
  for (const item of items) {
    const group = groupOf(timeOf(item), now);
    const last = groups.at(-1);
    if (last && nameOf(last.group) === nameOf(group)) last.items.push(item);
    else groups.push({ group, items: [item] });
  }
  return groups;
}

export function nameOf(group: Group): string {
  return group.key === "older" ? `${group.year}-${group.month + 1}` : group.key;
}

function daysBetween(earlier: Date, later: Date): number {
  // The function compares midnights in UTC, because the days on which clocks change have 23 or 25 hours.
  const midnight = (time: Date) => Date.UTC(time.getFullYear(), time.getMonth(), time.getDate());
  return (midnight(later) - midnight(earlier)) / 86_400_000;
}
