// The reader changes, deletes and restores entities in place. The pages show a change before the server confirms it, and
// take it back if the server refuses it.
import { Problem } from "holdfast-client/problem";

import { changeEntity, createEntity, deleteEntity, restoreEntity, type Entity, type EntityKind, type Fields } from "../client/workspace";
import { texts } from "../i18n/workspace";
import { refocus } from "../refocus";
import { showToast } from "../shell/controls/toasts";
import { nameOf } from "./kinds";
import { change, tellChanged, tellDeleted } from "./news";

const UNDO_FOR_MS = 8_000;

/** Changes fields that a reader sees as a whole, so the last writer wins and no version is named. */
export async function edit(kind: EntityKind, entity: Entity, fields: Fields): Promise<void> {
  try {
    await change(kind, entity, fields, () => changeEntity(kind, entity.id, fields));
  } catch (error) {
    showToast(reasonOf(error) ?? texts.list.notChanged(nameOf(entity)));
  }
}

/** Returns the new entity, or nothing if the server has refused it. */
export async function add(kind: EntityKind, fields: Fields): Promise<Entity | undefined> {
  try {
    const entity = await createEntity(kind, fields);
    tellChanged(kind, entity);
    return entity;
  } catch (error) {
    showToast(reasonOf(error) ?? texts.list.notAdded);
    return undefined;
  }
}

/** Deletes at once, and offers to restore the entity. */
export async function remove(kind: EntityKind, entity: Entity, { onDeleted, onRestored }: { onDeleted?: () => void; onRestored?: () => void } = {}): Promise<void> {
  const name = nameOf(entity);
  try {
    await deleteEntity(kind, entity.id);
  } catch (error) {
    return void showToast(reasonOf(error) ?? texts.entity.notDeleted(name));
  }
  tellDeleted(kind, entity.id);
  onDeleted?.();
  refocus(() => document.getElementById("chat"));
  const restore = async () => {
    try {
      tellChanged(kind, await restoreEntity(kind, entity.id));
      onRestored?.();
    } catch (error) {
      showToast(reasonOf(error) ?? texts.entity.notRestored(name));
    }
  };
  showToast(texts.entity.deleted(name), { label: texts.entity.undo, run: () => void restore() }, UNDO_FOR_MS);
}

function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Problem)) return undefined;
  if (error.code === "workspace_full") return texts.list.full;
  // The server's sentence names the wrong field, or says what to delete first.
  return error.code === "invalid_entity" || error.code === "change_too_large" ? error.message : undefined;
}
