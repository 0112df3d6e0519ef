// This hook undoes a set of changes, or all changes of a run, and offers to take the undo back.
import { Problem } from "holdfast-client/problem";
import { useState } from "react";

import { undoChangeSet, type Undone } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { showToast } from "../../shell/controls/toasts";
import { tellUndone } from "../news";
import { entitiesIn, type NamedEntity } from "./named";

const OFFERED_FOR_MS = 8_000;

export type Undoing =
  | { at: "offered" }
  | { at: "busy" }
  /** These entities were changed again since: the reader decides about the rest. */
  | { at: "hindered"; by: NamedEntity[] }
  | { at: "done" };

export interface UndoActions {
  undo(): void;
  /** Undoes all but the changes of entities that were changed again. */
  undoRest(): void;
  leave(): void;
}

export function useUndo(perform: (how: { force: boolean }) => Promise<Undone>): [Undoing, UndoActions] {
  const [undoing, setUndoing] = useState<Undoing>({ at: "offered" });
  const run = async (force: boolean) => {
    if (undoing.at === "busy") return;
    setUndoing({ at: "busy" });
    try {
      const { change_set_id, undone } = await perform({ force });
      setUndoing({ at: "done" });
      const takeBack = async () => {
        try {
          await undoChangeSet(change_set_id, { force: false });
          setUndoing({ at: "offered" });
          showToast(texts.undo.takenBack);
          tellUndone();
        } catch (error) {
          showToast(reasonOf(error));
        }
      };
      showToast(texts.undo.done(undone.length), { label: texts.undo.takeBack, run: () => void takeBack() }, OFFERED_FOR_MS);
      tellUndone();
    } catch (error) {
      if (error instanceof Problem && error.code === "changed_since") return setUndoing({ at: "hindered", by: entitiesIn(error.message) });
      const isOver = error instanceof Problem && (error.code === "already_undone" || error.status === 404);
      setUndoing({ at: isOver ? "done" : "offered" });
      showToast(reasonOf(error));
    }
  };
  return [undoing, { undo: () => void run(false), undoRest: () => void run(true), leave: () => setUndoing({ at: "offered" }) }];
}

function reasonOf(error: unknown): string {
  const code = error instanceof Problem ? error.code : undefined;
  if (code === "already_undone") return texts.undo.already;
  if (code === "run_live") return texts.undo.live;
  if (code === "change_set_not_found") return texts.undo.nothing;
  return texts.undo.failed;
}
