// How the reader wants to see tasks; the browser keeps the choice.
import { keep, read } from "../../shell/kept";
import { ORDERS, type TaskOrder } from "../taskOrder";

export const GROUPINGS = ["state", "priority", "due"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface TaskView {
  group: Grouping;
  /** The order within a state; a group of priorities or of dates has its own. */
  order: TaskOrder;
}

const NAME = "tasks";

export function keptView(): TaskView {
  const [group, order] = (read(NAME) ?? "").split(" ");
  return { group: GROUPINGS.find((one) => one === group) ?? "state", order: ORDERS.find((one) => one === order) ?? "newest" };
}

export function keepView({ group, order }: TaskView): void {
  keep(NAME, group === "state" && order === "newest" ? undefined : `${group} ${order}`);
}
