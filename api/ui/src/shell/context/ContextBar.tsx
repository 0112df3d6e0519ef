// The line below the header of a chat with a planner: its context and its focus. A change counts for the next message.
import { useEffect, useState } from "react";

import { type AgentContext, contextOf, isAboutProject, PROJECT_CONTEXTS } from "../../client/context";
import { texts } from "../../i18n/workspace";
import { projectPath } from "../../workspace/address";
import { PageLink } from "../../workspace/PageLink";
import { useName } from "../../workspace/names";
import { Icon } from "../controls/icons";
import { Menu } from "../controls/Menu";
import { FocusDialog } from "./FocusDialog";
import "./ContextBar.css";

type Props = {
  context: AgentContext;
  onChange(context: AgentContext): void;
};

export function ContextBar({ context, onChange }: Props) {
  const [isChoosing, setIsChoosing] = useState(false);
  const projectId = isAboutProject(context) ? context.entity_id : undefined;
  const projectName = useName("project", projectId) ?? context.projectFocus?.projectName ?? "";
  useEffect(() => setIsChoosing(false), [projectId]);
  if (projectId === undefined) {
    return (
      <div className="context-bar" role="group" aria-label={texts.context.about}>
        <span className="context-part">{context.context_type === "project_create" ? texts.context.create : texts.context.global}</span>
      </div>
    );
  }
  const type = context.context_type as (typeof PROJECT_CONTEXTS)[number];
  const focus = context.projectFocus;
  const entity = focus && focus.focusType !== "project-wide" && focus.focusEntityId !== undefined ? { kind: focus.focusType, id: focus.focusEntityId, name: focus.focusEntityName ?? "" } : undefined;
  const focusName = entity ? `${texts.kind[entity.kind]}: ${entity.name}` : texts.context.wide;
  const project = { id: projectId, name: projectName };
  return (
    <>
      <div className="context-bar" role="group" aria-label={texts.context.about}>
        <PageLink className="context-part" to={projectPath(projectId)} dir="auto">
          <Icon name="project" />
          <span>{projectName || texts.kind.project}</span>
        </PageLink>
        <Menu label={`${texts.context.action}: ${texts.context.actions[type]}`} items={PROJECT_CONTEXTS.map((one) => ({ label: texts.context.actions[one]!, isChosen: one === type, run: () => onChange(contextOf(one, project, entity)) }))}>
          <span>{texts.context.actions[type]}</span>
          <Icon name="down" />
        </Menu>
        <button type="button" className="menu-button" aria-haspopup="dialog" aria-label={`${texts.context.focus}: ${focusName}`} onClick={() => setIsChoosing(true)}>
          <span dir="auto">{focusName}</span>
          <Icon name="down" />
        </button>
      </div>
      {isChoosing && (
        <FocusDialog
          projectId={projectId}
          isWide={!entity}
          onClose={() => setIsChoosing(false)}
          onChoose={(chosen) => {
            setIsChoosing(false);
            onChange(contextOf(type, project, chosen));
          }}
        />
      )}
    </>
  );
}
