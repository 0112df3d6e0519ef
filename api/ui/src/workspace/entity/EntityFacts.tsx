// The short fields of an entity, which the reader changes in place.
import { type ReactNode, useMemo } from "react";

import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import type { InnerKind } from "../address";
import { Choice } from "../controls/Choice";
import { DateChoice } from "../controls/DateChoice";
import { PriorityChoice } from "../controls/PriorityChoice";
import { isPassed } from "../dates";
import { edit } from "../edits";
import { dateFields, isPast, nameOf } from "../kinds";
import { useEntities } from "../useListed";

const DATES = { start_at: texts.starts, end_at: texts.ends, due_at: texts.due, target_date: texts.target };

export function EntityFacts({ kind, entity }: { kind: InnerKind; entity: Entity }) {
  const type = entity.type ?? entity.kind;
  return (
    <>
      {kind === "task" && (
        <Fact name={texts.priority}>
          <PriorityChoice task={entity} />
        </Fact>
      )}
      {dateFields(kind).map((field) => (
        <Fact key={field} name={DATES[field]}>
          <DateChoice label={DATES[field]} value={entity[field]} isLate={field === "due_at" && !isPast(entity.state) && isPassed(entity.due_at)} onChoose={(day) => void edit(kind, entity, { [field]: day })} />
        </Fact>
      ))}
      {kind === "task" && <Parent task={entity} kind="plan" />}
      {kind === "task" && <Parent task={entity} kind="goal" />}
      {type && <Fact name={texts.type}>{type}</Fact>}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <span className="fact">
      <span className="fact-name">{name}</span> {children}
    </span>
  );
}

/** The reader chooses from so many plans or goals. */
const MOST = 200;

/** The plan or the goal of a task. */
function Parent({ task, kind }: { task: Entity; kind: "plan" | "goal" }) {
  const ofProject = useMemo(() => ({ project_id: task.project_id }), [task.project_id]);
  const { items } = useEntities(kind, ofProject, { limit: MOST });
  const field = `${kind}_id` as const;
  const value = task[field] ?? "";
  if (items.length === 0 && value === "") return undefined;
  const none = kind === "plan" ? texts.noPlan : texts.noGoal;
  const nameOfId = (id: string) => items.find((item) => item.id === id);
  return (
    <Fact name={texts[kind]}>
      <Choice
        look="plain"
        label={texts[kind]}
        value={value}
        options={["", ...items.map(({ id }) => id)]}
        textOf={(id) => (id === "" ? none : nameOf(nameOfId(id) ?? { name: "…" }))}
        onChoose={(id) => void edit("task", task, { [field]: id || null })}
      />
    </Fact>
  );
}
