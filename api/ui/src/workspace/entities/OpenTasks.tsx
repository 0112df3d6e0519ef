// The tasks that are neither done nor cancelled, in one order, with a heading for each priority or for each time at which
// they are due.
import { type ReactNode, useEffect, useId, useMemo } from "react";

import type { Entity, EntityFilter } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Rest } from "../controls/Rest";
import { isPast, STATES } from "../kinds";
import { dueGroup, inRuns } from "../taskOrder";
import { useEntities } from "../useListed";
import { Rows } from "./Rows";

const OPEN = STATES.task.filter((state) => !isPast(state)).join(",");

type Props = { group: "priority" | "due"; state?: string; filter: EntityFilter; openId?: string; onCount(list: string, count: number | undefined): void };

export function OpenTasks({ group, state = OPEN, filter, openId, onCount }: Props) {
  const wanted = useMemo(() => ({ ...filter, state }), [filter, state]);
  const reading = useEntities("task", wanted, { order: group });
  const { items, next, progress } = reading;
  const count = progress === "idle" ? items.length : undefined;
  useEffect(() => onCount("open", count), [onCount, count]);
  const headingOf = group === "due" ? (task: Entity) => texts.dueGroups[dueGroup(task)] : (task: Entity) => texts.priorities[task.priority ?? 0]!;
  const runs = inRuns(items, headingOf);
  return (
    <>
      {runs.map(({ key, items }, index) => (
        <Run key={key} heading={key} count={texts.list.count(items.length, next !== null && index === runs.length - 1)}>
          <Rows kind="task" items={items} openId={openId} />
        </Run>
      ))}
      <Rest reading={reading} />
    </>
  );
}

function Run({ heading, count, children }: { heading: string; count: string; children: ReactNode }) {
  const id = useId();
  return (
    <section className="group" aria-labelledby={id}>
      <h2 id={id} className="group-name">
        <span>{heading}</span> <span className="group-count">{count}</span>
      </h2>
      {children}
    </section>
  );
}
