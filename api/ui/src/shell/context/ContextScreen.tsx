// The reader chooses the context of a new chat with a planner: everything, a project, or a new project; and of a project
// an audit or a forecast.
import { useCallback } from "react";

import { type AgentContext, contextOf, isAboutProject, type PROJECT_CONTEXTS } from "../../client/context";
import { texts } from "../../i18n/workspace";
import { useEntities } from "../../workspace/useListed";
import "./ContextScreen.css";

type Props = { context: AgentContext; onChoose(context: AgentContext): void };

const CHOICES = [
  { type: "global", name: texts.context.global, detail: texts.context.globalDetail },
  { type: "project", name: texts.context.project, detail: texts.context.projectDetail },
  { type: "project_create", name: texts.context.create, detail: texts.context.createDetail },
  { type: "project_audit", name: texts.context.audit, detail: texts.context.auditDetail },
  { type: "project_forecast", name: texts.context.forecast, detail: texts.context.forecastDetail },
] as const;

/** The reader chooses from so many projects; the page of any other one has a button that leads here. */
const MOST = 200;
const ALL = {};

export function ContextScreen({ context, onChoose }: Props) {
  const projects = useEntities("project", ALL, { limit: MOST });
  const isAbout = isAboutProject(context);
  const known = useCallback((id: string | undefined) => projects.items.find((project) => project.id === id), [projects.items]);
  const choose = (type: AgentContext["context_type"]) => {
    if (type === "global" || type === "project_create") return onChoose({ context_type: type });
    const project = known(context.entity_id) ?? projects.items[0];
    const name = context.projectFocus?.projectName ?? project?.name ?? "";
    const id = context.entity_id ?? project?.id;
    if (id !== undefined) onChoose(contextOf(type, { id, name }));
  };
  const isWithoutProject = projects.items.length === 0 && context.entity_id === undefined;
  return (
    <fieldset className="contexts">
      <legend>{texts.context.title}</legend>
      <div className="contexts-choices">
        {CHOICES.map(({ type, name, detail }) => (
          <label key={type} className="context-choice">
            <input type="radio" name="context" value={type} checked={context.context_type === type} disabled={isWithoutProject && type !== "global" && type !== "project_create"} onChange={() => choose(type)} />
            <span>
              <strong>{name}</strong>
              <span className="context-detail">{detail}</span>
            </span>
          </label>
        ))}
      </div>
      {isAbout && (
        <label className="contexts-project">
          <span>{texts.context.which}</span>
          <select
            className="field"
            value={context.entity_id ?? ""}
            onChange={(event) => {
              const project = known(event.target.value);
              if (project) onChoose(contextOf(context.context_type as (typeof PROJECT_CONTEXTS)[number], { id: project.id, name: project.name ?? "" }));
            }}
          >
            {!known(context.entity_id) && <option value={context.entity_id ?? ""}>{context.projectFocus?.projectName ?? texts.context.noProject}</option>}
            {projects.items.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
    </fieldset>
  );
}
