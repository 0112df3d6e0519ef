// A part of the workspace's pages that changes an entity tells the other parts, so that all show the same.
import type { Entity, EntityFilter, EntityKind } from "../client/workspace";
import { dayOf } from "./dates";

export interface News {
  kind: EntityKind;
  id: string;
  /** The entity as it is now; undefined after its deletion. */
  entity?: Entity;
}

const listeners = new Set<(news: News) => void>();

export function tellChanged(kind: EntityKind, entity: Entity): void {
  listeners.forEach((listener) => listener({ kind, id: entity.id, entity }));
}

export function tellDeleted(kind: EntityKind, id: string): void {
  listeners.forEach((listener) => listener({ kind, id }));
}

const upheavals = new EventTarget();

/** An undo may have changed any entity. */
export function tellUndone(): void {
  upheavals.dispatchEvent(new Event("undone"));
}

/** Returns a function that ends the calls. */
export function onUndone(listener: () => void): () => void {
  upheavals.addEventListener("undone", listener);
  return () => upheavals.removeEventListener("undone", listener);
}

/** Returns a function that ends the calls. */
export function onNews(listener: (news: News) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Whether a list with this filter has the entity. */
export function fits(entity: Entity, filter: EntityFilter): boolean {
  const { due_before, ...equal } = filter;
  const isEqual = Object.entries(equal).every(([field, value]) => value === undefined || entity[field as keyof typeof equal] === value);
  return isEqual && (due_before === undefined || (entity.due_at != null && dayOf(entity.due_at) < dayOf(due_before)));
}
