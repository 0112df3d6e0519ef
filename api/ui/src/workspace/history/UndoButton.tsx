// This button undoes changes. Where others have changed something since, it lists that and offers to undo the rest.
import { useEffect, useRef } from "react";

import type { Undone } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { EntityName } from "./EntityName";
import { useUndo } from "./useUndo";
import "./UndoButton.css";

type Props = {
  label: string;
  perform(how: { force: boolean }): Promise<Undone>;
};

export function UndoButton({ label, perform }: Props) {
  const [undoing, { undo, undoRest, leave }] = useUndo(perform);
  const rest = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (undoing.at === "hindered") rest.current?.focus();
  }, [undoing.at]);
  if (undoing.at === "done") return undefined;
  if (undoing.at !== "hindered") {
    return (
      <button type="button" className="quiet-button" aria-disabled={undoing.at === "busy"} onClick={undo}>
        {label}
      </button>
    );
  }
  return (
    <div className="hindered" role="group" aria-label={label}>
      <p>{texts.undo.changedSince}</p>
      <ul>
        {undoing.by.map(({ kind, id }) => (
          <li key={id}>
            <EntityName kind={kind} id={id} />
          </li>
        ))}
      </ul>
      <div className="hindered-actions">
        <button ref={rest} type="button" className="button" onClick={undoRest}>
          {texts.undo.rest}
        </button>
        <button type="button" className="button" onClick={leave}>
          {texts.undo.keep}
        </button>
      </div>
    </div>
  );
}
