// The filters of a project's tasks.
import { useMemo } from "react";

import type { EntityFilter } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { PRIORITIES } from "../controls/PriorityChoice";
import { stateText } from "../controls/StateChoice";
import { today } from "../dates";
import { nameOf, STATES } from "../kinds";
import { useEntities } from "../useListed";

export type TaskFilter = Omit<EntityFilter, "project_id">;

type Props = { projectId: string; filter: TaskFilter; onFilter(filter: TaskFilter): void };

/** Readers choose from so many plans and goals. */
const MOST = 200;

export function Filters({ projectId, filter, onFilter }: Props) {
  const ofProject = useMemo(() => ({ project_id: projectId }), [projectId]);
  const plans = useEntities("plan", ofProject, { limit: MOST }).items;
  const goals = useEntities("goal", ofProject, { limit: MOST }).items;
  const named = (items: typeof plans) => items.map((item) => ({ value: item.id, text: nameOf(item) }));
  return (
    <div className="workspace-bar" role="group" aria-label={texts.filters}>
      <Filter label={texts.stateName} any={texts.anyState} value={filter.state} options={STATES.task.map((value) => ({ value, text: stateText(value) }))} onChoose={(state) => onFilter({ ...filter, state })} />
      <Filter
        label={texts.priority}
        any={texts.anyPriority}
        value={filter.priority?.toString()}
        options={PRIORITIES.map((value) => ({ value, text: texts.priorities[Number(value)]! }))}
        onChoose={(priority) => onFilter({ ...filter, priority: priority === undefined ? undefined : Number(priority) })}
      />
      <Filter
        label={texts.due}
        any={texts.anyDate}
        value={filter.due_before}
        options={[
          { value: today(), text: texts.overdue },
          { value: today(undefined, 8), text: texts.dueThisWeek },
        ]}
        onChoose={(due_before) => onFilter({ ...filter, due_before })}
      />
      {plans.length > 0 && <Filter label={texts.plan} any={texts.anyPlan} value={filter.plan_id} options={named(plans)} onChoose={(plan_id) => onFilter({ ...filter, plan_id })} />}
      {goals.length > 0 && <Filter label={texts.goal} any={texts.anyGoal} value={filter.goal_id} options={named(goals)} onChoose={(goal_id) => onFilter({ ...filter, goal_id })} />}
    </div>
  );
}

type FilterProps = { label: string; any: string; value: string | undefined; options: { value: string; text: string }[]; onChoose(value: string | undefined): void };

function Filter({ label, any, value, options, onChoose }: FilterProps) {
  return (
    <select className="field" aria-label={label} value={value ?? ""} onChange={(event) => onChoose(event.target.value || undefined)}>
      <option value="">{any}</option>
      {options.map(({ value, text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}
