// This hook reads the relations of a project or of one entity, and changes them.
import { useCallback } from "react";

import { createEdge, deleteEdge, type Edge, readEdges, restoreEdge } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { showToast } from "../../shell/controls/toasts";
import { withItem, without } from "../listed";
import { type Reading, useListed } from "../useListed";

const UNDO_FOR_MS = 8_000;
const PAGE = 200;

export interface Edges {
  reading: Reading<Edge>;
  /** Returns whether the relation is there. */
  add(edge: Omit<Edge, "id" | "version">): Promise<boolean>;
  remove(edge: Edge): void;
}

export function useEdges(of: { projectId: string } | { entityId: string }): Edges {
  const projectId = "projectId" in of ? of.projectId : undefined;
  const entityId = "entityId" in of ? of.entityId : undefined;
  const read = useCallback((cursor: string | undefined) => readEdges({ project_id: projectId, entity_id: entityId }, { cursor, limit: PAGE }), [projectId, entityId]);
  const reading = useListed<Edge>(read);
  const { change } = reading;
  return {
    reading,
    add: async (edge) => {
      try {
        const added = await createEdge(edge);
        change((listed) => withItem(listed, added));
        return true;
      } catch {
        showToast(texts.relations.notAdded);
        return false;
      }
    },
    remove: (edge) => {
      change((listed) => without(listed, edge.id));
      const putBack = () => change((listed) => withItem(listed, edge));
      const restore = () => void restoreEdge(edge.id).then(putBack, () => showToast(texts.relations.notAdded));
      deleteEdge(edge.id).then(
        () => showToast(texts.relations.removed, { label: texts.entity.undo, run: restore }, UNDO_FOR_MS),
        () => {
          putBack();
          showToast(texts.relations.notRemoved);
        },
      );
    },
  };
}
