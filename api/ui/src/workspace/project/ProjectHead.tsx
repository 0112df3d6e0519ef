// The head of a project's page: its name and state, and one line about its dates and its description, which opens. The
// reader changes all of them in place.
import { useId, useState } from "react";

import type { Entity } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import { DateChoice } from "../controls/DateChoice";
import { NameField } from "../controls/NameField";
import { StateChoice } from "../controls/StateChoice";
import { edit } from "../edits";
import { LongField } from "../text/LongField";
import { unsavedOf } from "../text/unsent";
import { datesOf, plainOf } from "./summary";

/** An open entity is the page's subject, and has its main heading. */
export function ProjectHead({ project, hasOpen }: { project: Entity; hasOpen: boolean }) {
  const { id, start_at, end_at, description } = project;
  const [isOpen, setIsOpen] = useState(() => unsavedOf(`project/${id}/description`) !== undefined);
  const details = useId();
  const dates = datesOf(project);
  const about = plainOf(description ?? "");
  return (
    <div className="project-head">
      <div className="project-line">
        <NameField kind="project" entity={project} as={hasOpen ? "h2" : "h1"} />
        <StateChoice kind="project" entity={project} />
      </div>
      <button type="button" className="project-summary" aria-expanded={isOpen} aria-controls={details} onClick={() => setIsOpen(!isOpen)}>
        <Icon name="down" />
        {isOpen || (!dates && about === "") ? (
          <span>{texts.project.details}</span>
        ) : (
          <>
            {dates && <span className="project-dates">{dates}</span>}
            <span className="project-about" dir="auto">
              {about}
            </span>
          </>
        )}
      </button>
      <div id={details} className="project-details" hidden={!isOpen}>
        {isOpen && (
          <>
            <div className="project-facts">
              <span className="fact">
                <span className="fact-name">{texts.starts}</span>
                <DateChoice label={texts.starts} value={start_at} onChoose={(start_at) => void edit("project", project, { start_at })} />
              </span>
              <span className="fact">
                <span className="fact-name">{texts.ends}</span>
                <DateChoice label={texts.ends} value={end_at} onChoose={(end_at) => void edit("project", project, { end_at })} />
              </span>
            </div>
            <LongField kind="project" entity={project} />
          </>
        )}
      </div>
    </div>
  );
}
