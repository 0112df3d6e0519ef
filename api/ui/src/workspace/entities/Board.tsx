// The entities of one kind in a project, in groups by state, with a line that adds one.
import { useCallback, useMemo, useState } from "react";

import type { EntityFilter } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import type { InnerKind } from "../address";
import { isPast, STATES } from "../kinds";
import { AddEntity } from "./AddEntity";
import { Filters, type TaskFilter } from "./Filters";
import { Group } from "./Group";
import "./Board.css";

type Props = { kind: InnerKind; projectId: string; openId?: string };

export function Board({ kind, projectId, openId }: Props) {
  const [filter, setFilter] = useState<TaskFilter>({});
  const { state, ...rest } = filter;
  const key = JSON.stringify(rest);
  const wanted = useMemo<EntityFilter>(() => ({ ...JSON.parse(key), project_id: projectId }), [key, projectId]);
  /** How many entities the read groups have. */
  const [counts, setCounts] = useState<Record<string, number>>({});
  const onCount = useCallback((state: string, count: number | undefined) => setCounts((before) => ({ ...before, [state]: count ?? Number.NaN })), []);
  const states = STATES[kind].filter((one) => state === undefined || one === state);
  // A closed group counts nothing.
  const known = states.map((one) => counts[one]).filter((count) => count !== undefined);
  const isEmpty = known.length > 0 && known.every((count) => count === 0);
  return (
    <div className="board">
      <AddEntity kind={kind} projectId={projectId} />
      {kind === "task" && <Filters projectId={projectId} filter={filter} onFilter={setFilter} />}
      {states.map((one) => (
        <Group key={`${one} ${key}`} kind={kind} state={one} filter={wanted} openId={openId} isOpenAtFirst={state !== undefined || !isPast(one)} onCount={onCount} />
      ))}
      {isEmpty && <p className="rest">{texts.list.empty[kind]}</p>}
    </div>
  );
}
