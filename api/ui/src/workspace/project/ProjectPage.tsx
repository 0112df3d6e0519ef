// A project has its head, its sections, and beside them the entity that the reader has opened.
import { useEffect } from "react";

import { contextOf } from "../../client/context";
import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import { Menu } from "../../shell/controls/Menu";
import { visit } from "../../visit";
import { entityPath, INNER_KINDS, type InnerKind, isProjectUnknown, PLURALS, PROJECTS_PATH, projectPath, type WorkspaceView } from "../address";
import { ConversationLinks } from "../conversations/ConversationLinks";
import { useLiveChanges } from "../conversations/useLiveChanges";
import { useProjectConversations } from "../conversations/useProjectConversations";
import { remove } from "../edits";
import { Board } from "../entities/Board";
import { EntityPanel } from "../entity/EntityPanel";
import { type Frame, useTitle } from "../frame";
import { Gone } from "../Gone";
import { ProjectHistory } from "../history/History";
import { nameOf } from "../kinds";
import { ProjectRelations } from "../relations/ProjectRelations";
import { Top } from "../Top";
import { useEntity } from "../useEntity";
import { ProjectHead } from "./ProjectHead";
import { Sections } from "./Sections";
import "./ProjectPage.css";

export type ProjectView = Extract<WorkspaceView, { view: "project" }>;

type Props = { view: ProjectView; frame: Frame };

export function ProjectPage({ view, frame }: Props) {
  if (view.open && isProjectUnknown(view.projectId)) return <Finder open={view.open} frame={frame} />;
  return <Project view={view} frame={frame} />;
}

/** Finds out the project of an entity, and opens the entity in it. */
function Finder({ open, frame }: { open: { kind: InnerKind; id: string }; frame: Frame }) {
  const known = useEntity(open.kind, open.id);
  const projectId = known.entity?.project_id;
  useEffect(() => {
    if (projectId !== undefined) visit(entityPath(open.kind, open.id, projectId), { replace: true });
  }, [projectId, open]);
  return (
    <main className="chat workspace" id="chat" tabIndex={-1}>
      <Top frame={frame} />
      <div className="workspace-scroll">
        <Gone known={known} />
      </div>
    </main>
  );
}

function Project({ view: { projectId, section, open }, frame }: Props) {
  const known = useEntity("project", projectId);
  const project = known.entity;
  useTitle(project && nameOf(project), frame.waiting);
  const conversations = useProjectConversations(projectId, frame.live);
  const liveRuns = conversations.found?.items.flatMap(({ live_run_id }) => live_run_id ?? []) ?? [];
  useLiveChanges(liveRuns, conversations.readAgain);
  const kind = INNER_KINDS.find((kind) => PLURALS[kind] === section);
  if (!project) {
    return (
      <main className="chat workspace" id="chat" tabIndex={-1}>
        <Top frame={frame} />
        <div className="workspace-scroll">
          <Gone known={known} />
        </div>
      </main>
    );
  }
  const talk = () => frame.onTalk(contextOf("project", { id: projectId, name: nameOf(project) }));
  return (
    <main className="chat workspace" id="chat" tabIndex={-1} data-open={open ? "" : undefined}>
      <Top frame={frame} path={[{ name: nameOf(project), to: projectPath(projectId) }]}>
        <button type="button" className="button" title={texts.project.talk} onClick={talk}>
          <Icon name="talk" />
          <span className="button-text">{texts.project.talk}</span>
        </button>
        <Menu label={texts.project.more(nameOf(project))} items={[{ label: texts.entity.delete, icon: "delete", isDanger: true, run: () => removeProject(project) }]} />
      </Top>
      <div className="workspace-body">
        <div className="workspace-scroll">
          <div className="workspace-column">
            <ProjectHead project={project} hasOpen={open !== undefined} />
            <Sections projectId={projectId} current={section} isLive={liveRuns.length > 0} />
            {kind && <Board key={kind} kind={kind} projectId={projectId} openId={open?.id} onTalk={talk} />}
            {section === "conversations" && <ConversationLinks conversations={conversations} onTalk={talk} />}
            {section === "relations" && <ProjectRelations projectId={projectId} />}
            {section === "history" && <ProjectHistory projectId={projectId} />}
          </div>
        </div>
        {open && <EntityPanel key={open.id} kind={open.kind} id={open.id} projectId={projectId} />}
      </div>
    </main>
  );
}

function removeProject(project: Entity) {
  void remove("project", project, { onDeleted: () => visit(PROJECTS_PATH), onRestored: () => visit(projectPath(project.id)) });
}
