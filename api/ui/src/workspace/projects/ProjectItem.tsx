// One project of the list.
import { memo } from "react";

import type { Entity } from "../../client/workspace";
import { language } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { projectPath } from "../address";
import { StateChoice } from "../controls/StateChoice";
import { dayText } from "../dates";
import { PageLink } from "../PageLink";

export const ProjectItem = memo(function ProjectItem({ project }: { project: Entity }) {
  const { id, name, description, start_at, end_at, updated_at } = project;
  return (
    <li className="project-item">
      <div className="project-item-text">
        <PageLink to={projectPath(id)} dir="auto">
          {name}
        </PageLink>
        {description && (
          <p className="project-item-description" dir="auto">
            {plainOf(description)}
          </p>
        )}
        <p className="project-item-dates">{start_at || end_at ? texts.project.dates(start_at ? dayText(start_at, language) : "…", end_at ? dayText(end_at, language) : "…") : texts.project.changed(dayText(updated_at, language))}</p>
      </div>
      <StateChoice kind="project" entity={project} />
    </li>
  );
});

/** Two lines of a description need no markup. */
function plainOf(markdown: string): string {
  return markdown.slice(0, 400).replace(/[*_`#>]+/g, "").replace(/\s+/g, " ").trim();
}
