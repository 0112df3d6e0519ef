// The reader chooses an entity of a project: by a search, or from the newest of a kind.
import { useMemo, useState } from "react";

import { texts } from "../../i18n/workspace";
import { INNER_KINDS, type InnerKind, PLURALS } from "../address";
import { Rest } from "../controls/Rest";
import { stateText } from "../controls/StateChoice";
import { nameOf } from "../kinds";
import { Search } from "../search/Search";
import { useEntities } from "../useListed";
import "../search/Search.css";

export type Picked = { kind: InnerKind; id: string; name: string };

export function EntityPicker({ projectId, isFocused, onChoose }: { projectId: string; isFocused?: boolean; onChoose(picked: Picked): void }) {
  const [kind, setKind] = useState<InnerKind>("task");
  const ofProject = useMemo(() => ({ project_id: projectId }), [projectId]);
  const newest = useEntities(kind, ofProject, { limit: 20 });
  return (
    <div className="picker">
      <Search projectId={projectId} isFocused={isFocused} onChoose={(hit) => hit.kind !== "project" && onChoose({ kind: hit.kind, id: hit.id, name: hit.name })} />
      <div className="picker-kinds" role="group" aria-label={texts.context.recent}>
        {INNER_KINDS.map((one) => (
          <button key={one} type="button" className="picker-kind" aria-pressed={one === kind} onClick={() => setKind(one)}>
            {texts.section[PLURALS[one]]}
          </button>
        ))}
      </div>
      <ul role="list" className="hits picker-newest">
        {newest.items.map((entity) => (
          <li key={entity.id}>
            <button type="button" className="hit" onClick={() => onChoose({ kind, id: entity.id, name: nameOf(entity) })}>
              <span className="hit-name" dir="auto">
                {nameOf(entity)}
              </span>
              <span className="hit-state">{stateText(entity.state)}</span>
            </button>
          </li>
        ))}
      </ul>
      <Rest reading={newest}>
        <p className="edges-none">{texts.list.none[kind]}</p>
      </Rest>
    </div>
  );
}
