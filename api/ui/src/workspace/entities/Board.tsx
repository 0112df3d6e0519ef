// The entities of one kind in a project, in groups by state, with a line that adds one.
import { useMemo, useState } from "react";

import type { EntityFilter } from "../../client/workspace";
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
  const states = STATES[kind].filter((one) => state === undefined || one === state);
  return (
    <div className="board">
      <AddEntity kind={kind} projectId={projectId} />
      {kind === "task" && <Filters projectId={projectId} filter={filter} onFilter={setFilter} />}
      {states.map((one) => (
        <Group key={`${one} ${key}`} kind={kind} state={one} filter={wanted} openId={openId} isOpenAtFirst={state !== undefined || !isPast(one)} />
      ))}
    </div>
  );
}
