// This hook reads the relations of a project or of one entity, and changes them.
import { useCallback } from "react";

import { createEdge, deleteEdge, type Edge, readEdges, restoreEdge } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { showToast } from "../../shell/controls/toasts";
import { type Listed, withItem, without } from "../listed";
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
  const { changes } = reading;
  const withEdge = (edge: Edge) => (listed: Listed<Edge>) => withItem(listed, edge);
  return {
    reading,
    add: async (edge) => {
      try {
        changes.tell(withEdge(await createEdge(edge)));
        return true;
      } catch {
        showToast(texts.relations.notAdded);
        return false;
      }
    },
    remove: (edge) => {
      const isRemoved = (listed: Listed<Edge>) => without(listed, edge.id);
      const restore = () => void restoreEdge(edge.id).then((restored) => changes.tell(withEdge(restored)), () => showToast(texts.relations.notAdded));
      changes.make(edge.id, isRemoved, () => deleteEdge(edge.id).then(() => isRemoved)).then(
        () => showToast(texts.relations.removed, { label: texts.entity.undo, run: restore }, UNDO_FOR_MS),
        () => showToast(texts.relations.notRemoved),
      );
    },
  };
}
