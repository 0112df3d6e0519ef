// The reader chooses the relation, and then the entity that it leads to.
import { useState } from "react";

import { type EntityKind, RELATIONS } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { EntityPicker } from "./EntityPicker";

type Props = { projectId: string; onAdd(relation: string, other: { kind: EntityKind; id: string }): void };

export function AddRelation({ projectId, onAdd }: Props) {
  const [relation, setRelation] = useState<string>("relates_to");
  return (
    <div className="add-relation" role="group" aria-label={texts.relations.add}>
      <select className="field" autoFocus aria-label={texts.relations.relation} value={relation} onChange={(event) => setRelation(event.target.value)}>
        {RELATIONS.map((name) => (
          <option key={name} value={name}>
            {texts.relations.name[name]}
          </option>
        ))}
      </select>
      <EntityPicker projectId={projectId} onChoose={(other) => onAdd(relation, other)} />
    </div>
  );
}
