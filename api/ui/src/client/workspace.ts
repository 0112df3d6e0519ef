// These are the typed calls of the workspace's pages. All of them reject with a `Problem`.
import { path } from "holdfast-client/address";

import { call, query } from "./call";
import type { Page } from "./server";

export type EntityKind = "project" | "task" | "plan" | "goal" | "document" | "output";

/** An entity of any kind: a project, for example, has a `name` and no `title`. */
export interface Entity {
  id: string;
  project_id?: string;
  name?: string;
  title?: string;
  description?: string | null;
  /** Lists leave it out. */
  body?: string | null;
  state: string;
  priority?: number | null;
  due_at?: string | null;
  start_at?: string | null;
  end_at?: string | null;
  target_date?: string | null;
  plan_id?: string | null;
  goal_id?: string | null;
  /** The kind of an output. */
  kind?: string | null;
  /** The type of a document. */
  type?: string | null;
  version: number;
  created_at: string;
  updated_at: string;
}

/** The fields of an entity that a client may write. */
export type Fields = Partial<Omit<Entity, "id" | "created_at" | "updated_at">>;

export type EntityFilter = {
  project_id?: string;
  /** One or several, with commas between them. */
  state?: string;
  priority?: number;
  due_before?: string;
  plan_id?: string;
  goal_id?: string;
};

export interface Change {
  id: string;
  change_set_id: string;
  kind: EntityKind | "edge" | "template";
  entity_id: string;
  action: "create" | "update" | "delete" | "restore" | "remove";
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  user_id: string;
  /** The run that has made the change. */
  run_id: string | null;
  created_at: string;
}

export interface Named {
  kind: string;
  id: string;
}

export interface Undone {
  change_set_id: string;
  undone: Named[];
  left_out: Named[];
}

export const RELATIONS = ["has", "supports", "depends_on", "blocks", "documents", "produces", "relates_to"] as const;

export interface Edge {
  id: string;
  project_id: string;
  from_kind: EntityKind;
  from_id: string;
  relation: string;
  to_kind: EntityKind;
  to_id: string;
  version: number;
}

export interface Hit {
  kind: EntityKind;
  id: string;
  name: string;
  project_id: string | null;
  state: string;
}

export interface Template {
  id: string;
  key: string | null;
  kind: string;
  name: string;
  description: string | null;
  body: unknown;
  state: "requested" | "draft" | "published";
  version?: number;
}

/** The server's own templates have these ids, and stay as they are. */
export function isBuiltin({ id }: Template): boolean {
  return id.startsWith("00000000-0000-7000-8000-");
}

type Listing = { cursor?: string; limit?: number; signal?: AbortSignal };

const plural = (kind: EntityKind) => `${kind}s`;

/** The newest entity comes first, unless tasks have another order. */
export const readEntities = (kind: EntityKind, filter: EntityFilter, { cursor, limit, order, signal }: Listing & { order?: "newest" | "priority" | "due" } = {}) =>
  call<Page<Entity>>(`${path`/v1/workspace/${plural(kind)}`}${query({ ...filter, cursor, limit, order: order === "newest" ? undefined : order })}`, { signal });

export const readEntity = (kind: EntityKind, id: string, { signal }: { signal?: AbortSignal } = {}) => call<Entity>(path`/v1/workspace/${plural(kind)}/${id}`, { signal });

export const createEntity = (kind: EntityKind, body: Fields) => call<Entity>(path`/v1/workspace/${plural(kind)}`, { method: "POST", body });

/** With `version`, rejects with `version_conflict` if the entity has another version. */
export const changeEntity = (kind: EntityKind, id: string, body: Fields) => call<Entity>(path`/v1/workspace/${plural(kind)}/${id}`, { method: "PATCH", body });

export const deleteEntity = (kind: EntityKind, id: string) => call<void>(path`/v1/workspace/${plural(kind)}/${id}`, { method: "DELETE" });

export const restoreEntity = (kind: EntityKind, id: string) => call<Entity>(path`/v1/workspace/${plural(kind)}/${id}/restore`, { method: "POST" });

/** The newest change comes first. Without an entity, the changes are those of the whole workspace. */
export const readChanges = (entity: { kind: EntityKind; id: string } | undefined, { cursor, signal }: Listing = {}) =>
  call<Page<Change>>(`${entity ? path`/v1/workspace/${plural(entity.kind)}/${entity.id}/changes` : "/v1/workspace/changes"}${query({ cursor })}`, { signal });

/** Rejects with `changed_since` if an entity was changed again; with `force`, such entities stay as they are. */
export const undoChangeSet = (id: string, { force }: { force: boolean }) =>
  call<Undone>(`${path`/v1/workspace/change_sets/${id}/undo`}${force ? "?force=true" : ""}`, { method: "POST" });

/** Returns the set that has undone the changes of a run, unless that was taken back. */
export const readUndoOfRun = async (id: string) => (await call<{ change_set_id: string | null }>(path`/v1/runs/${id}/undo`)).change_set_id;

export const undoRun = (id: string, { force }: { force: boolean }) => call<Undone>(`${path`/v1/runs/${id}/undo`}${force ? "?force=true" : ""}`, { method: "POST" });

export const readEdges = (filter: { project_id?: string; entity_id?: string }, { cursor, limit, signal }: Listing = {}) =>
  call<Page<Edge>>(`/v1/workspace/edges${query({ ...filter, cursor, limit })}`, { signal });

export const createEdge = (body: Omit<Edge, "id" | "version">) => call<Edge>("/v1/workspace/edges", { method: "POST", body });

export const deleteEdge = (id: string) => call<void>(path`/v1/workspace/edges/${id}`, { method: "DELETE" });

export const restoreEdge = (id: string) => call<Edge>(path`/v1/workspace/edges/${id}/restore`, { method: "POST" });

/** The best hit comes first. */
export const searchWorkspace = (q: string, { project_id, limit, signal }: { project_id?: string } & Listing = {}) =>
  call<{ items: Hit[] }>(`/v1/workspace/search${query({ q, project_id, limit })}`, { signal });

export const readTemplates = ({ cursor, signal }: Listing = {}) => call<Page<Template>>(`/v1/workspace/templates${query({ cursor })}`, { signal });

/** Returns the requests of all users, for operators. */
export const readTemplateRequests = ({ cursor, signal }: Listing = {}) => call<Page<Template>>(`/v1/workspace/template_requests${query({ cursor })}`, { signal });

export type TemplateFields = Partial<Pick<Template, "key" | "name" | "description" | "body">>;

export const changeTemplate = (id: string, body: TemplateFields) => call<Template>(path`/v1/workspace/templates/${id}`, { method: "PATCH", body });

export const publishTemplate = (id: string, body: TemplateFields) => call<Template>(path`/v1/workspace/template_requests/${id}/publish`, { method: "POST", body });
