// The head of a project's page: its name, state, dates and description, which the reader changes in place.
import { useState } from "react";

import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { DateChoice } from "../controls/DateChoice";
import { NameField } from "../controls/NameField";
import { StateChoice } from "../controls/StateChoice";
import { edit } from "../edits";
import { Search } from "../search/Search";
import { LongField } from "../text/LongField";

/** An open entity is the page's subject, and has its main heading. */
export function ProjectHead({ project, hasOpen }: { project: Entity; hasOpen: boolean }) {
  const [isOpen, setIsOpen] = useState(false);
  const hasText = Boolean(project.description);
  return (
    <div className="project-head">
      <NameField kind="project" entity={project} as={hasOpen ? "h2" : "h1"} />
      <div className="project-facts">
        <StateChoice kind="project" entity={project} />
        <span className="fact">
          <span className="fact-name">{texts.starts}</span>
          <DateChoice label={texts.starts} value={project.start_at} onChoose={(start_at) => void edit("project", project, { start_at })} />
        </span>
        <span className="fact">
          <span className="fact-name">{texts.ends}</span>
          <DateChoice label={texts.ends} value={project.end_at} onChoose={(end_at) => void edit("project", project, { end_at })} />
        </span>
        {!hasText && !isOpen && (
          <button type="button" className="date-choice" onClick={() => setIsOpen(true)}>
            {texts.project.describe}
          </button>
        )}
      </div>
      {(hasText || isOpen) && <LongField kind="project" entity={project} isOpen={isOpen} onClosed={() => setIsOpen(false)} />}
      <Search projectId={project.id} />
    </div>
  );
}
