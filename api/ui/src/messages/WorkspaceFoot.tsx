// The line below an answer that has changed the workspace: the changed entities, and the undo of the changes.
import { useCallback, useRef } from "react";

import type { ChatMessage } from "../chat/message";
import { undoRun } from "../client/workspace";
import { texts } from "../i18n/workspace";
import { UndoButton } from "../workspace/history/UndoButton";
import { entitiesOf, hasChanges } from "./entities";
import { useUndone } from "./useUndone";
import { WorkspaceLinks } from "./WorkspaceLinks";
import "../shell/controls/controls.css";

export function WorkspaceFoot({ message }: { message: ChatMessage }) {
  const runId = hasChanges(message) ? message.metadata?.runId : undefined;
  const foot = useRef<HTMLDivElement>(null);
  const undone = useUndone(runId, foot);
  const perform = useCallback((how: { force: boolean }) => undoRun(runId!, how), [runId]);
  const entities = entitiesOf(message);
  return (
    <div className="workspace-foot" ref={foot}>
      {entities.length > 0 && <WorkspaceLinks entities={entities} />}
      {undone === "standing" && <UndoButton label={texts.undo.changes} perform={perform} />}
      {undone === "undone" && <p className="undone">{texts.undo.undone}</p>}
    </div>
  );
}
