// The orders of tasks, as the server has them, and the groups of an ordered list.
import type { Entity } from "../client/workspace";
import { dayOf, today } from "./dates";
import { type Compare, newestFirst } from "./listed";

export const ORDERS = ["newest", "priority", "due"] as const;
export type TaskOrder = (typeof ORDERS)[number];

/** A task without a date comes after those with one. */
const NEVER = "9999-12-31T23:59:59.999Z";

const byPriority: Compare<Entity> = (one, other) => (other.priority ?? 0) - (one.priority ?? 0);

const byDue: Compare<Entity> = (one, other) => {
  const [first, second] = [one.due_at ?? NEVER, other.due_at ?? NEVER];
  return first < second ? -1 : first > second ? 1 : 0;
};

const COMPARES: Record<TaskOrder, Compare<Entity>> = {
  newest: newestFirst,
  priority: (one, other) => byPriority(one, other) || byDue(one, other) || newestFirst(one, other),
  due: (one, other) => byDue(one, other) || byPriority(one, other) || newestFirst(one, other),
};

export function compareOf(order: TaskOrder): Compare<Entity> {
  return COMPARES[order];
}

export type DueGroup = "overdue" | "today" | "week" | "later" | "never";

/** Returns when a task is due for the reader. */
export function dueGroup({ due_at }: Pick<Entity, "due_at">, now = new Date()): DueGroup {
  if (due_at == null) return "never";
  const day = dayOf(due_at);
  if (day < today(now)) return "overdue";
  if (day === today(now)) return "today";
  return day <= today(now, 7) ? "week" : "later";
}

/** Puts the neighbours of an ordered list together that have the same key. */
export function inRuns<T, Key>(items: readonly T[], keyOf: (item: T) => Key): { key: Key; items: T[] }[] {
  const runs: { key: Key; items: T[] }[] = [];
  for (const item of items) {
    const key = keyOf(item);
    const last = runs.at(-1);
    if (last?.key === key) last.items.push(item);
    else runs.push({ key, items: [item] });
  }
  return runs;
}
