// The line below an answer that has read or changed the workspace: its entities, and the undo of its changes.
import { useCallback } from "react";

import type { ChatMessage } from "../chat/message";
import { undoRun } from "../client/workspace";
import { texts } from "../i18n/workspace";
import { UndoButton } from "../workspace/history/UndoButton";
import { entitiesOf, hasChanges } from "./entities";
import { WorkspaceLinks } from "./WorkspaceLinks";
import "../shell/controls/controls.css";

export function WorkspaceFoot({ message }: { message: ChatMessage }) {
  const runId = message.metadata?.runId;
  const perform = useCallback((how: { force: boolean }) => undoRun(runId!, how), [runId]);
  const entities = entitiesOf(message);
  return (
    <div className="workspace-foot">
      {entities.length > 0 && <WorkspaceLinks entities={entities} />}
      {runId !== undefined && hasChanges(message) && <UndoButton label={texts.undo.changes} perform={perform} />}
    </div>
  );
}
