// A template begins a project with these items, which its JSON has. They name each other by keys.

export interface Item {
  name: string;
  about?: string;
}

export interface Content {
  goals: Item[];
  /** Each plan has its tasks. */
  plans: (Item & { tasks: Item[] })[];
  /** The tasks without a plan. */
  tasks: Item[];
  documents: Item[];
  outputs: Item[];
  /** The ends are names; `undefined` is the project itself. */
  relations: { from?: string; relation: string; to?: string }[];
  counts: Record<"goals" | "plans" | "tasks" | "documents" | "outputs", number>;
}

type Fields = Record<string, unknown>;

export function contentOf(body: unknown): Content {
  const [goals, plans, tasks, documents, outputs] = [listIn(body, "goals"), listIn(body, "plans"), listIn(body, "tasks"), listIn(body, "documents"), listIn(body, "outputs")];
  const names = new Map([...goals, ...plans, ...tasks, ...documents, ...outputs].map((item) => [item.key, itemOf(item).name]));
  const planKeys = new Set(plans.map(({ key }) => key));
  const nameOfKey = (key: unknown) => (key === "project" ? undefined : (names.get(key) ?? textOf(key) ?? "…"));
  return {
    goals: goals.map(itemOf),
    plans: plans.map((plan) => ({ ...itemOf(plan), tasks: tasks.filter(({ plan_id }) => plan_id !== undefined && plan_id === plan.key).map(itemOf) })),
    tasks: tasks.filter(({ plan_id }) => plan_id === undefined || !planKeys.has(plan_id)).map(itemOf),
    documents: documents.map(itemOf),
    outputs: outputs.map(itemOf),
    relations: listIn(body, "relationships").map(({ from, relation, to }) => ({ from: nameOfKey(from), relation: textOf(relation) ?? "", to: nameOfKey(to) })),
    counts: { goals: goals.length, plans: plans.length, tasks: tasks.length, documents: documents.length, outputs: outputs.length },
  };
}

/** Users write templates, too, so any field may be missing. */
function listIn(body: unknown, name: string): Fields[] {
  const list = isObject(body) ? body[name] : undefined;
  return Array.isArray(list) ? list.filter(isObject) : [];
}

function itemOf({ name, title, description, key }: Fields): Item {
  return { name: textOf(name) ?? textOf(title) ?? textOf(key) ?? "…", about: textOf(description) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
