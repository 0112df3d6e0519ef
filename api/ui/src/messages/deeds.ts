// Says in words what a call of the workspace's tools has done, such as "Created the project Garden party".
import { type Call, nameOf } from "./call";
import { entitiesIn } from "./entities";

type Verb = "create" | "update" | "delete" | "list" | "search" | "get";

export type DeedWords = {
  /** The line of a call that has ended. */
  done: Record<Verb, (what: string) => string>;
  /** The subject of a call: one entity, or entities of a kind. */
  one(kind: string, name: string | undefined): string;
  all(kind: string): string;
};

const TOOL = /^(create|update|delete|list|search|get)_onto_(project|task|goal|plan|document|output)s?(?:_details)?$/;

/** Returns the line of an ended call; undefined for other tools. */
export function deedOf(words: DeedWords, call: Call): string | undefined {
  const { tool } = nameOf(call);
  const [, verb, kind] = TOOL.exec(tool === "create_task_document" ? "create_onto_document" : tool) ?? [];
  if (!verb || !kind) return undefined;
  const isOfMany = verb === "list" || verb === "search";
  return words.done[verb as Verb](isOfMany ? words.all(kind) : words.one(kind, nameIn(call, kind)));
}

/** The result names the entity; a call without one has the name in its input, if it creates the entity. */
function nameIn(call: Call, kind: string): string | undefined {
  const found = call.state === "output-available" ? entitiesIn(call.output).find((entity) => entity.kind === kind)?.name : undefined;
  const { title, name } = (call.input ?? {}) as { title?: unknown; name?: unknown };
  return found ?? [title, name].find((text) => typeof text === "string");
}
