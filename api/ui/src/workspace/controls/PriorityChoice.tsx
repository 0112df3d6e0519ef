// The priority of a task, which the reader changes in place.
import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { edit } from "../edits";
import { nameOf } from "../kinds";
import { Choice } from "./Choice";

const NONE = "";
export const PRIORITIES = ["5", "4", "3", "2", "1"];

export function PriorityChoice({ task, isBrief = false }: { task: Entity; isBrief?: boolean }) {
  return (
    <Choice
      look="plain"
      label={texts.priorityOf(nameOf(task))}
      value={task.priority == null ? NONE : `${task.priority}`}
      options={[...PRIORITIES, NONE]}
      textOf={(priority) => (priority === NONE ? (isBrief ? "–" : texts.noPriority) : isBrief ? `P${priority}` : texts.priorities[Number(priority)]!)}
      onChoose={(priority) => void edit("task", task, { priority: priority === NONE ? null : Number(priority) })}
    />
  );
}
