// This file says what differs between the kinds of entities: their states, names and texts.
import type { Entity, EntityKind } from "../client/workspace";

/** The states in the order of their groups: what needs attention first. The first one is not always the initial one. */
export const STATES: Record<EntityKind, readonly string[]> = {
  project: ["planning", "active", "paused", "done", "archived"],
  task: ["in_progress", "todo", "blocked", "done", "cancelled"],
  plan: ["active", "draft", "done"],
  goal: ["open", "achieved", "dropped"],
  document: ["draft", "in_review", "published"],
  output: ["draft", "in_review", "published"],
};

/** Lists keep the groups of these states closed at first. */
const PAST = new Set(["done", "cancelled", "dropped"]);

export function isPast(state: string): boolean {
  return PAST.has(state);
}

/** Returns the name of an entity, which some kinds call a title. */
export function nameOf({ name, title }: Pick<Entity, "name" | "title">): string {
  return name ?? title ?? "";
}

/** The field that has the name. */
export function nameField(kind: EntityKind): "name" | "title" {
  return kind === "task" || kind === "document" ? "title" : "name";
}

/** The field that has the long text. */
export function textField(kind: EntityKind): "body" | "description" {
  return kind === "document" || kind === "output" ? "body" : "description";
}

/** The fields that have a date, in the order of the page. */
export function dateFields(kind: EntityKind): readonly ("start_at" | "end_at" | "due_at" | "target_date")[] {
  switch (kind) {
    case "project":
    case "plan":
      return ["start_at", "end_at"];
    case "task":
      return ["due_at"];
    case "goal":
      return ["target_date"];
    default:
      return [];
  }
}
