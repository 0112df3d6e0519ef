// The context of a message says where in the workspace its writer is. Planners read it.
import type { EntityKind } from "./workspace";

export type ContextType = "global" | "project" | "project_create" | "project_audit" | "project_forecast";

/** The part of a project that a message is about. */
export interface Focus {
  focusType: "project-wide" | Exclude<EntityKind, "project">;
  focusEntityId?: string;
  focusEntityName?: string;
  projectId: string;
  projectName?: string;
}

export interface AgentContext {
  context_type: ContextType;
  /** The project. */
  entity_id?: string;
  /** The kind of the entity that the focus names. */
  ontologyEntityType?: Exclude<EntityKind, "project">;
  projectFocus?: Focus;
}

/** The contexts that are about one existing project. */
export const PROJECT_CONTEXTS = ["project", "project_audit", "project_forecast"] as const;

export function isAboutProject({ context_type }: AgentContext): boolean {
  return (PROJECT_CONTEXTS as readonly string[]).includes(context_type);
}

/** Returns the context of a message about all of a project, or about one entity in it. */
export function contextOf(type: (typeof PROJECT_CONTEXTS)[number], project: { id: string; name: string }, entity?: { kind: Exclude<EntityKind, "project">; id: string; name: string }): AgentContext {
  const wide: Focus = { focusType: "project-wide", projectId: project.id, projectName: project.name };
  if (!entity) return { context_type: type, entity_id: project.id, projectFocus: wide };
  const focus: Focus = { ...wide, focusType: entity.kind, focusEntityId: entity.id, focusEntityName: entity.name };
  return { context_type: type, entity_id: project.id, ontologyEntityType: entity.kind, projectFocus: focus };
}
