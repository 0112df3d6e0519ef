// A part of the workspace's pages that changes an entity tells the other parts, so that all show the same. They show a
// change before the server has confirmed it.
import { Changes } from "../changes";
import type { Entity, EntityFilter, EntityKind, Fields } from "../client/workspace";
import { dayOf } from "./dates";

export interface News {
  kind: EntityKind;
  id: string;
  /** Returns the entity after the change; undefined after its deletion. A view may not have it `before`. */
  after(before: Entity | undefined): Entity | undefined;
}

export const news = new Changes<News>();

/** The entities with pending changes, as they are without them. */
const origins = new Map<string, Entity>();

/** Shows the fields, and sends them. Rejects if the server refuses them. */
export async function change(kind: EntityKind, entity: Entity, fields: Fields, send: () => Promise<Entity>): Promise<void> {
  const { id } = entity;
  if (!origins.has(id)) origins.set(id, entity);
  const mine: News = { kind, id, after: (before) => ({ ...(before ?? entityBefore(mine)), ...fields }) };
  try {
    await news.make(id, mine, async () => {
      const made = await send();
      origins.set(id, made);
      return isNow(kind, made);
    });
  } finally {
    if (!news.pending.some((other) => other.id === id)) origins.delete(id);
  }
}

/** Returns an entity before a pending change, for a view that does not have it. */
function entityBefore(change: News): Entity {
  const earlier = news.pending.slice(0, news.pending.indexOf(change)).filter(({ id }) => id === change.id);
  return earlier.reduce((entity, { after }) => after(entity)!, origins.get(change.id)!);
}

/** An older version says nothing. An item of a list has no body, so a newer one does not remove it. */
function isNow(kind: EntityKind, entity: Entity): News {
  return { kind, id: entity.id, after: (before) => (before && before.version > entity.version ? before : { ...before, ...entity }) };
}

export function tellChanged(kind: EntityKind, entity: Entity): void {
  if (origins.has(entity.id)) origins.set(entity.id, entity);
  news.tell(isNow(kind, entity));
}

export function tellDeleted(kind: EntityKind, id: string): void {
  news.tell({ kind, id, after: () => undefined });
}

const upheavals = new EventTarget();

/** An undo may have changed any entity. */
export function tellUndone(): void {
  upheavals.dispatchEvent(new Event("undone"));
}

/** Returns a function that ends the calls. */
export function onUndone(listener: () => void): () => void {
  return onUpheaval("undone", listener);
}

/** A run may have changed more than it has named. */
export function tellElsewhere(): void {
  upheavals.dispatchEvent(new Event("elsewhere"));
}

/** Returns a function that ends the calls. */
export function onElsewhere(listener: () => void): () => void {
  return onUpheaval("elsewhere", listener);
}

function onUpheaval(name: string, listener: () => void): () => void {
  upheavals.addEventListener(name, listener);
  return () => upheavals.removeEventListener(name, listener);
}

/** Whether a list with this filter has the entity. A filter may have several states. */
export function fits(entity: Entity, filter: EntityFilter): boolean {
  const { due_before, state, ...equal } = filter;
  if (state !== undefined && !state.split(",").includes(entity.state)) return false;
  const isEqual = Object.entries(equal).every(([field, value]) => value === undefined || entity[field as keyof typeof equal] === value);
  return isEqual && (due_before === undefined || (entity.due_at != null && dayOf(entity.due_at) < dayOf(due_before)));
}
