// Results of the workspace's tools name entities: this file finds them, and the calls that change something.
import type { ChatMessage, Part } from "../chat/message";
import type { Kind } from "../workspace/address";
import { type Call, isCall, nameOf } from "./call";

export interface NamedEntity {
  kind: Kind;
  id: string;
  name: string;
}

/** A line of a result, such as `- task 01a2167f-…: Measure the tide (todo)`. */
const LINE = /^\s*- (project|task|plan|goal|document|output) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}): (.+)$/gm;

/** The facts behind a name, such as its state. */
const FACTS = /\s\([^()]*\)\s*$/;

const KINDS = ["project", "task", "plan", "goal", "document", "output"];

/** A result names more entities than a reader wants to see. */
const MOST = 30;

/** Returns the entities that the result of a call names, each once. */
export function entitiesIn(output: unknown): NamedEntity[] {
  const text = typeof output === "string" ? output : textIn(output);
  const lines = [...text.matchAll(LINE)].map(([, kind, id, name]) => ({ kind: kind as Kind, id: id!, name: name!.replace(FACTS, "") }));
  return once([...listedIn(output), ...lines]).slice(0, MOST);
}

/** Returns the entities that an answer has changed: those that it has only read would hide them. */
export function entitiesOf({ parts }: ChatMessage): NamedEntity[] {
  const changes = parts.filter((part) => isCall(part) && part.state === "output-available" && CHANGING.test(nameOf(part).tool)) as Call[];
  const ids = new Set(changes.map(({ toolCallId }) => toolCallId));
  const listed = parts.flatMap((part) => (part.type === "data-call" && ids.has(part.data.toolCallId) ? listedIn(part.data) : []));
  return once([...changes.flatMap((call) => ("output" in call ? entitiesIn(call.output) : [])), ...listed]).slice(0, MOST);
}

export const CHANGING = /^(?:(?:create|update|delete)_onto_|create_task_document$)/;

/** Whether a call of this tool changes the workspace. */
export function hasChanged(tool: string): boolean {
  return CHANGING.test(tool);
}

/** Whether a call of the answer, or a step of its plan, has changed the workspace. */
export function hasChanges({ parts }: ChatMessage): boolean {
  return parts.some((part) => (isCall(part) ? part.state === "output-available" && hasChanged(nameOf(part).tool) : isStepWithChanges(part)));
}

function isStepWithChanges(part: Part): boolean {
  const steps = part.type === "data-plan" ? part.data.steps : part.type === "data-step" ? [part.data.step] : [];
  return steps.some(({ status, tools }) => status === "completed" && tools.some(hasChanged));
}

function once(entities: NamedEntity[]): NamedEntity[] {
  return [...new Map(entities.map((entity) => [entity.id, entity])).values()];
}

/** The text of a result that has several parts. */
function textIn(output: unknown): string {
  if (typeof output !== "object" || output === null) return "";
  const { content } = output as { content?: unknown };
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: unknown }) => (typeof part?.text === "string" ? part.text : "")).join("\n");
}

function listedIn(value: unknown): NamedEntity[] {
  if (typeof value !== "object" || value === null) return [];
  const { entities, entitiesAccessed } = value as { entities?: unknown; entitiesAccessed?: unknown };
  const listed = Array.isArray(entities) ? entities : Array.isArray(entitiesAccessed) ? entitiesAccessed : [];
  return listed.filter(isNamed);
}

function isNamed(value: unknown): value is NamedEntity {
  if (typeof value !== "object" || value === null) return false;
  const { kind, id, name } = value as Record<string, unknown>;
  return KINDS.includes(kind as string) && typeof id === "string" && typeof name === "string";
}
