// The priority of a task, which the reader changes in place.
import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { refocus } from "../../refocus";
import { edit } from "../edits";
import { nameOf } from "../kinds";
import { Choice } from "./Choice";

const NONE = "";
export const PRIORITIES = ["5", "4", "3", "2", "1"];

/** With `isBrief`, a list has it, which may be sorted by it. */
export function PriorityChoice({ task, isBrief = false }: { task: Entity; isBrief?: boolean }) {
  const choose = (priority: string) => {
    void edit("task", task, { priority: priority === NONE ? null : Number(priority) });
    if (isBrief) refocus(() => document.querySelector<HTMLElement>(`[data-id="${CSS.escape(task.id)}"] .in-place-priority`));
  };
  return (
    <Choice
      look="priority"
      label={texts.priorityOf(nameOf(task))}
      value={task.priority == null ? NONE : `${task.priority}`}
      options={[...PRIORITIES, NONE]}
      textOf={(priority) => (priority === NONE && isBrief ? "–" : texts.priorities[Number(priority)]!)}
      onChoose={choose}
    />
  );
}
