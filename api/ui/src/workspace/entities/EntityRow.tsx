// One entity of a list. A list may have thousands of them, so React renders a row again only after a change of it.
import { memo } from "react";

import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { entityPath, type InnerKind } from "../address";
import { DateChoice } from "../controls/DateChoice";
import { PriorityChoice } from "../controls/PriorityChoice";
import { StateChoice } from "../controls/StateChoice";
import { isPassed } from "../dates";
import { edit } from "../edits";
import { isPast, nameOf } from "../kinds";
import { PageLink } from "../PageLink";

type Props = { kind: InnerKind; entity: Entity; isCurrent: boolean };

export const EntityRow = memo(function EntityRow({ kind, entity, isCurrent }: Props) {
  const name = nameOf(entity);
  return (
    <div role="listitem" className="row" data-id={entity.id} data-current={isCurrent || undefined}>
      <StateChoice kind={kind} entity={entity} />
      <PageLink to={entityPath(kind, entity.id, entity.project_id)} className="row-name" dir="auto" aria-current={isCurrent ? "true" : undefined} title={name}>
        {name}
      </PageLink>
      {kind === "task" && <PriorityChoice task={entity} isBrief />}
      {kind === "task" && <DateChoice label={texts.dueOf(name)} value={entity.due_at} isLate={!isPast(entity.state) && isPassed(entity.due_at)} onChoose={(due_at) => void edit("task", entity, { due_at })} />}
      {kind === "goal" && <DateChoice label={texts.target} value={entity.target_date} onChoose={(target_date) => void edit("goal", entity, { target_date })} />}
      {kind === "plan" && <DateChoice label={texts.ends} value={entity.end_at} onChoose={(end_at) => void edit("plan", entity, { end_at })} />}
      {(kind === "document" || kind === "output") && <span className="row-kind">{entity.type ?? entity.kind}</span>}
    </div>
  );
});
