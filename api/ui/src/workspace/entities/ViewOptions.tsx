// The reader chooses how the tasks of a project are grouped and sorted, and which of them are shown.
import { useMemo } from "react";

import type { EntityFilter } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { PRIORITIES } from "../controls/PriorityChoice";
import { stateText } from "../controls/StateChoice";
import { today } from "../dates";
import { nameOf, STATES } from "../kinds";
import { ORDERS, type TaskOrder } from "../taskOrder";
import { useEntities } from "../useListed";
import { GROUPINGS, type Grouping, type TaskView } from "./taskView";

export type TaskFilter = Omit<EntityFilter, "project_id">;

type Props = { projectId: string; filter: TaskFilter; view: TaskView; onFilter(filter: TaskFilter): void; onView(view: TaskView): void };

/** Readers choose from so many plans and goals. */
const MOST = 200;

export function ViewOptions({ projectId, filter, view, onFilter, onView }: Props) {
  const ofProject = useMemo(() => ({ project_id: projectId }), [projectId]);
  const plans = useEntities("plan", ofProject, { limit: MOST }).items;
  const goals = useEntities("goal", ofProject, { limit: MOST }).items;
  const named = (items: typeof plans) => items.map((item) => ({ value: item.id, text: nameOf(item) }));
  return (
    <div className="view-options">
      <div className="view-part" role="group" aria-label={texts.view.order}>
        <Option label={texts.view.group} value={view.group} options={GROUPINGS.map((value) => ({ value, text: texts.view.groups[value] }))} onChoose={(group) => onView({ ...view, group: group as Grouping })} />
        {view.group === "state" && <Option label={texts.view.sort} value={view.order} options={ORDERS.map((value) => ({ value, text: texts.view.orders[value] }))} onChoose={(order) => onView({ ...view, order: order as TaskOrder })} />}
      </div>
      <div className="view-part" role="group" aria-label={texts.filters}>
        <Option label={texts.stateName} any={texts.anyState} value={filter.state} options={STATES.task.map((value) => ({ value, text: stateText(value) }))} onChoose={(state) => onFilter({ ...filter, state })} />
        <Option
          label={texts.priority}
          any={texts.anyPriority}
          value={filter.priority?.toString()}
          options={PRIORITIES.map((value) => ({ value, text: texts.priorities[Number(value)]! }))}
          onChoose={(priority) => onFilter({ ...filter, priority: priority === undefined ? undefined : Number(priority) })}
        />
        <Option
          label={texts.due}
          any={texts.anyDate}
          value={filter.due_before}
          options={[
            { value: today(), text: texts.overdue },
            { value: today(undefined, 8), text: texts.dueThisWeek },
          ]}
          onChoose={(due_before) => onFilter({ ...filter, due_before })}
        />
        {plans.length > 0 && <Option label={texts.plan} any={texts.anyPlan} value={filter.plan_id} options={named(plans)} onChoose={(plan_id) => onFilter({ ...filter, plan_id })} />}
        {goals.length > 0 && <Option label={texts.goal} any={texts.anyGoal} value={filter.goal_id} options={named(goals)} onChoose={(goal_id) => onFilter({ ...filter, goal_id })} />}
        {Object.values(filter).some((value) => value !== undefined) && (
          <button type="button" className="button" onClick={() => onFilter({})}>
            {texts.view.clear}
          </button>
        )}
      </div>
    </div>
  );
}

type OptionProps = {
  label: string;
  /** The words of no choice; without them, one is chosen always. */
  any?: string;
  value: string | undefined;
  options: { value: string; text: string }[];
  onChoose(value: string | undefined): void;
};

function Option({ label, any, value, options, onChoose }: OptionProps) {
  return (
    <label className="view-option">
      <span>{label}</span>
      <select className="field" data-chosen={(any !== undefined && value !== undefined) || undefined} value={value ?? ""} onChange={(event) => onChoose(event.target.value || undefined)}>
        {any !== undefined && <option value="">{any}</option>}
        {options.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
