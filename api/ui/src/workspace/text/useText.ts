// This hook edits a long text of an entity. A save names the version that its writer has read. If another writer has
// changed the text meanwhile, the writer has both texts and decides.
import { Problem } from "holdfast-client/problem";
import { useState } from "react";

import { changeEntity, type Entity, type EntityKind, readEntity } from "../../client/workspace";
import { textField } from "../kinds";
import { tellChanged } from "../news";
import { keepUnsaved, type Unsaved, unsavedOf } from "./unsent";

export type Editing =
  | { at: "reading" }
  | { at: "writing"; unsaved: Unsaved; isKept?: boolean; isBusy?: boolean; problem?: Problem }
  /** `theirs` is the newer entity. */
  | { at: "conflict"; unsaved: Unsaved; theirs: Entity; isBusy?: boolean; problem?: Problem };

export interface TextActions {
  begin(): void;
  write(text: string): void;
  /** Discards the writer's text. */
  cancel(): void;
  save(): void;
  keepMine(): void;
  takeTheirs(): void;
  /** Continues with this text on top of the newer version. */
  merge(text: string): void;
}

export function useText(kind: EntityKind, entity: Entity, isOpen: boolean): [Editing, TextActions] {
  const field = textField(kind);
  const name = `${kind}/${entity.id}/${field}`;
  const fresh = (from: Entity): Unsaved => ({ text: from[field] ?? "", base: from[field] ?? "", version: from.version });
  const [editing, setEditing] = useState<Editing>(() => {
    const kept = unsavedOf(name);
    if (kept && kept.text !== (entity[field] ?? "")) return { at: "writing", unsaved: kept, isKept: true };
    return isOpen ? { at: "writing", unsaved: fresh(entity) } : { at: "reading" };
  });

  const end = () => {
    keepUnsaved(name, undefined);
    setEditing({ at: "reading" });
  };
  const show = (next: Exclude<Editing, { at: "reading" }>) => {
    keepUnsaved(name, next.unsaved.text === next.unsaved.base ? undefined : next.unsaved);
    setEditing(next);
  };

  const save = async (now: Exclude<Editing, { at: "reading" }>, unsaved: Unsaved) => {
    if (now.isBusy) return;
    setEditing((newest) => (newest.at === "reading" ? newest : { ...newest, isBusy: true, problem: undefined }));
    try {
      const saved = await changeEntity(kind, entity.id, { [field]: unsaved.text, version: unsaved.version });
      setEditing((newest) => afterSave(newest, unsaved.text, saved.version));
      tellChanged(kind, saved);
    } catch (error) {
      const problem = error instanceof Problem ? error : new Problem(0, "unknown", String(error));
      if (problem.code !== "version_conflict") return setEditing((newest) => withProblem(newest, problem));
      await decide(now, unsaved);
    }
  };

  /** Continues with what the writer has typed since the page sent the text. */
  const afterSave = (newest: Editing, sent: string, version: number): Editing => {
    const text = newest.at === "writing" ? newest.unsaved.text : sent;
    const unsaved = text === sent ? undefined : { text, base: sent, version };
    keepUnsaved(name, unsaved);
    return unsaved ? { at: "writing", unsaved } : { at: "reading" };
  };

  /** A newer version may have another state, for example, and the old text: then there is nothing to decide. */
  const decide = async (now: Exclude<Editing, { at: "reading" }>, unsaved: Unsaved) => {
    try {
      const theirs = await readEntity(kind, entity.id);
      tellChanged(kind, theirs);
      if ((theirs[field] ?? "") === unsaved.base) return await save({ ...now, isBusy: false }, { ...unsaved, version: theirs.version });
      setEditing((newest) => ({ at: "conflict", unsaved: newest.at === "reading" ? unsaved : newest.unsaved, theirs }));
    } catch (error) {
      setEditing((newest) => withProblem(newest, error instanceof Problem ? error : undefined));
    }
  };

  return [
    editing,
    {
      begin: () => setEditing({ at: "writing", unsaved: fresh(entity) }),
      write: (text) => editing.at === "writing" && show({ ...editing, isKept: false, problem: undefined, unsaved: { ...editing.unsaved, text } }),
      cancel: end,
      save: () => editing.at === "writing" && void save(editing, editing.unsaved),
      keepMine: () => editing.at === "conflict" && void save(editing, { ...editing.unsaved, base: editing.theirs[field] ?? "", version: editing.theirs.version }),
      takeTheirs: end,
      merge: (text) => editing.at === "conflict" && show({ at: "writing", unsaved: { text, base: editing.theirs[field] ?? "", version: editing.theirs.version } }),
    },
  ];
}

function withProblem(editing: Editing, problem: Problem | undefined): Editing {
  return editing.at === "reading" ? editing : { ...editing, isBusy: false, problem };
}
