// The list of projects: the reader finds, filters and creates them.
import { type FormEvent, useMemo, useRef, useState } from "react";

import { texts } from "../../i18n/workspace";
import { Icon, Mark } from "../../shell/controls/icons";
import { visit } from "../../visit";
import { projectPath, TEMPLATES_PATH } from "../address";
import { stateText } from "../controls/StateChoice";
import { Rest } from "../controls/Rest";
import { add } from "../edits";
import { type Frame, useTitle } from "../frame";
import { STATES } from "../kinds";
import { PageLink } from "../PageLink";
import { Search } from "../search/Search";
import { Top } from "../Top";
import { useEntities } from "../useListed";
import { ProjectItem } from "./ProjectItem";
import "./ProjectList.css";

export function ProjectList({ frame }: { frame: Frame }) {
  const [state, setState] = useState("");
  const [isCreating, setIsCreating] = useState(false);
  const wanted = useMemo(() => ({ state: state || undefined }), [state]);
  const projects = useEntities("project", wanted);
  useTitle(texts.projects, frame.waiting);

  const isEmpty = projects.items.length === 0 && projects.progress === "idle";
  return (
    <main className="chat workspace" id="chat" tabIndex={-1}>
      <Top frame={frame} isRoot>
        <PageLink className="button" to={TEMPLATES_PATH}>
          {texts.templates.title}
        </PageLink>
      </Top>
      <div className="workspace-scroll">
        <div className="workspace-column">
          <h1>{texts.projects}</h1>
          <p className="workspace-about">{texts.project.about}</p>
          <Search />
          <div className="workspace-bar">
            <button type="button" className="button" data-main={isEmpty ? undefined : ""} aria-expanded={isCreating} onClick={() => setIsCreating(!isCreating)}>
              <Icon name="add" />
              {texts.project.create}
            </button>
            <select className="field" aria-label={texts.stateName} value={state} onChange={(event) => setState(event.target.value)}>
              <option value="">{texts.anyState}</option>
              {STATES.project.map((state) => (
                <option key={state} value={state}>
                  {stateText(state)}
                </option>
              ))}
            </select>
          </div>
          {isCreating && <NewProject onCancel={() => setIsCreating(false)} />}
          <ul role="list" className="projects">
            {projects.items.map((project) => (
              <ProjectItem key={project.id} project={project} />
            ))}
          </ul>
          <Rest reading={projects}>{state === "" ? !isCreating && <Empty onCreate={() => setIsCreating(true)} /> : <p className="rest">{texts.project.noneOfState}</p>}</Rest>
        </div>
      </div>
    </main>
  );
}

function Empty({ onCreate }: { onCreate(): void }) {
  return (
    <div className="projects-empty">
      <Mark />
      <h2>{texts.project.none}</h2>
      <p>{texts.project.about}</p>
      <button type="button" className="button" data-main="" onClick={onCreate}>
        {texts.project.create}
      </button>
    </div>
  );
}

function NewProject({ onCancel }: { onCancel(): void }) {
  const [name, setName] = useState("");
  const isBusy = useRef(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() === "" || isBusy.current) return;
    isBusy.current = true;
    const project = await add("project", { name: name.trim() });
    isBusy.current = false;
    if (project) visit(projectPath(project.id));
  };
  return (
    <form className="add" onSubmit={(event) => void submit(event)} onKeyDown={(event) => event.key === "Escape" && onCancel()}>
      <input className="field" dir="auto" autoFocus maxLength={200} aria-label={texts.project.nameLabel} placeholder={texts.project.nameLabel} value={name} onChange={(event) => setName(event.target.value)} />
      <button type="submit" className="button" data-main="" disabled={name.trim() === ""}>
        {texts.project.createAction}
      </button>
    </form>
  );
}
