// The relations of one entity: the reader adds and removes them.
import { useState } from "react";

import type { Edge, Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import type { InnerKind } from "../address";
import { Rest } from "../controls/Rest";
import { useNames } from "../names";
import { AddRelation } from "./AddRelation";
import { EdgeItem } from "./EdgeItem";
import { useEdges } from "./useEdges";
import "./relations.css";

export function EntityRelations({ kind, entity }: { kind: InnerKind; entity: Entity }) {
  const { reading, add, remove } = useEdges({ entityId: entity.id });
  const names = useNames(endsOf(reading.items), entity.project_id);
  const [isAdding, setIsAdding] = useState(false);
  const projectId = entity.project_id!;
  return (
    <section className="panel-part">
      <h2>{texts.entity.relations}</h2>
      <ul role="list" className="edges">
        {reading.items.map((edge) => (
          <EdgeItem key={edge.id} edge={edge} nameOf={names} here={entity.id} onRemove={remove} />
        ))}
      </ul>
      <Rest reading={reading}>
        <p className="edges-none">{texts.relations.none}</p>
      </Rest>
      <button type="button" className="quiet-button" aria-expanded={isAdding} onClick={() => setIsAdding(!isAdding)}>
        {texts.relations.add}
      </button>
      {isAdding && (
        <AddRelation
          projectId={projectId}
          onAdd={async (relation, other) => {
            const isAdded = await add({ project_id: projectId, from_kind: kind, from_id: entity.id, relation, to_kind: other.kind, to_id: other.id });
            if (isAdded) setIsAdding(false);
          }}
        />
      )}
    </section>
  );
}

export function endsOf(edges: readonly Edge[]) {
  return edges.flatMap((edge) => [
    { kind: edge.from_kind, id: edge.from_id },
    { kind: edge.to_kind, id: edge.to_id },
  ]);
}
