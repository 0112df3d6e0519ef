// The server names entities in its texts by their kind and id: this file finds them.

const ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const KINDS = "project|task|plan|goal|document|output";

export interface NamedEntity {
  kind: "project" | "task" | "plan" | "goal" | "document" | "output";
  id: string;
  /** The text has the name only in lists. */
  name?: string;
}

/** Returns the entities that a sentence names, such as that of a refused undo. */
export function entitiesIn(text: string): NamedEntity[] {
  return [...text.matchAll(new RegExp(`\\b(${KINDS}) (${ID})`, "g"))].map(([, kind, id]) => ({ kind: kind as NamedEntity["kind"], id: id! }));
}
