// One project of the list.
import { memo } from "react";

import type { Entity } from "../../client/workspace";
import { locale } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { projectPath } from "../address";
import { StateChoice } from "../controls/StateChoice";
import { dayText } from "../dates";
import { PageLink } from "../PageLink";
import { datesOf, plainOf } from "../project/summary";

export const ProjectItem = memo(function ProjectItem({ project }: { project: Entity }) {
  const { id, name, description, updated_at } = project;
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
        <p className="project-item-dates">{datesOf(project) ?? texts.project.changed(dayText(updated_at, locale))}</p>
      </div>
      <StateChoice kind="project" entity={project} />
    </li>
  );
});
