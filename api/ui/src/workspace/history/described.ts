// This file says which fields a change has changed.
import type { Change } from "../../client/workspace";

export interface ChangedField {
  field: string;
  before: unknown;
  after: unknown;
}

/** These fields say nothing to a reader. */
const SILENT = new Set(["id", "project_id", "owner_id", "version", "created_at", "updated_at", "deleted_at", "from_kind", "from_id", "to_kind", "to_id"]);

/** Returns the fields that an update has changed; the other actions are about the whole entity. */
export function changedFields({ action, before, after }: Change): ChangedField[] {
  if (action !== "update" || !before || !after) return [];
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...fields]
    .filter((field) => !SILENT.has(field) && JSON.stringify(before[field] ?? null) !== JSON.stringify(after[field] ?? null))
    .map((field) => ({ field, before: before[field], after: after[field] }));
}

/** Returns the name of the changed entity. */
export function nameIn({ before, after }: Change): string | undefined {
  const state = after ?? before;
  const name = state?.name ?? state?.title ?? state?.key;
  return typeof name === "string" ? name : undefined;
}

/** Returns the project that the changed entity belongs to, or is. */
export function projectIn({ kind, entity_id, before, after }: Change): string | undefined {
  if (kind === "project") return entity_id;
  const id = (after ?? before)?.project_id;
  return typeof id === "string" ? id : undefined;
}

/** Puts the changes of one set together; the changes of a set follow one another. */
export function inSets(changes: readonly Change[]): { id: string; changes: Change[] }[] {
  const sets: { id: string; changes: Change[] }[] = [];
  for (const change of changes) {
    const last = sets.at(-1);
    if (last?.id === change.change_set_id) last.changes.push(change);
    else sets.push({ id: change.change_set_id, changes: [change] });
  }
  return sets;
}
