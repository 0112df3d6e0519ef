// The workspace has these addresses: `/w` lists the projects, `/w/templates` the templates. `/w/{project}` is a project,
// followed by one of its sections, and by the entity that is open in it.

/** The kinds of entities inside a project, as their addresses have them. */
export const PLURALS = { task: "tasks", goal: "goals", plan: "plans", document: "documents", output: "outputs" } as const;

export type InnerKind = keyof typeof PLURALS;
export type Kind = "project" | InnerKind;

export const INNER_KINDS = Object.keys(PLURALS) as InnerKind[];

export type Section = (typeof PLURALS)[InnerKind] | (typeof OTHERS)[number];

/** The sections that have no entities of one kind. */
const OTHERS = ["conversations", "relations", "history"] as const;

export type WorkspaceView =
  | { view: "projects" }
  | { view: "templates" }
  | { view: "project"; projectId: string; section: Section; open?: { kind: InnerKind; id: string } };

export const PROJECTS_PATH = "/w";
export const TEMPLATES_PATH = "/w/templates";

/** This stands in place of a project's id in an address whose author does not know the project. */
const UNKNOWN = "-";

/** Returns nothing for an address outside of the workspace, and for one that the workspace does not have. */
export function parseWorkspace(path: string): WorkspaceView | undefined {
  const [root, ...parts] = path.split("/").filter((part) => part !== "").map(decoded);
  if (root !== "w" || parts.includes(undefined)) return undefined;
  const [projectId, section, id, ...rest] = parts as string[];
  if (rest.length > 0) return undefined;
  if (projectId === undefined) return { view: "projects" };
  if (projectId === "templates" && section === undefined) return { view: "templates" };
  if (section === undefined) return { view: "project", projectId, section: "tasks" };
  const kind = kindOf(section);
  if (id !== undefined) return kind && { view: "project", projectId, section: PLURALS[kind], open: { kind, id } };
  if (kind) return { view: "project", projectId, section: PLURALS[kind] };
  const other = OTHERS.find((one) => one === section);
  return other && { view: "project", projectId, section: other };
}

export function projectPath(projectId: string, section: Section = "tasks"): string {
  const path = `/w/${encodeURIComponent(projectId)}`;
  return section === "tasks" ? path : `${path}/${section}`;
}

/** Without `projectId`, the page finds out the project when it opens the address. */
export function entityPath(kind: Kind, id: string, projectId?: string): string {
  if (kind === "project") return projectPath(id);
  return `/w/${encodeURIComponent(projectId ?? UNKNOWN)}/${PLURALS[kind]}/${encodeURIComponent(id)}`;
}

export function isProjectUnknown(projectId: string): boolean {
  return projectId === UNKNOWN;
}

function kindOf(plural: string): InnerKind | undefined {
  return INNER_KINDS.find((kind) => PLURALS[kind] === plural);
}

export function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    // A percent sign begins no valid escape.
    return undefined;
  }
}
