// The links to the parts of a project.
import { texts } from "../../i18n/workspace";
import { projectPath, type Section } from "../address";
import { PageLink } from "../PageLink";

const SECTIONS = Object.keys(texts.section) as Section[];

export function Sections({ projectId, current }: { projectId: string; current: Section }) {
  return (
    <nav className="sections" aria-label={texts.sections}>
      {SECTIONS.map((section) => (
        <PageLink key={section} to={projectPath(projectId, section)} aria-current={section === current ? "page" : undefined}>
          {texts.section[section]}
        </PageLink>
      ))}
    </nav>
  );
}
