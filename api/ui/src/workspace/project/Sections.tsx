// The links to the parts of a project.
import { useEffect, useRef } from "react";

import { words } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { projectPath, type Section } from "../address";
import { PageLink } from "../PageLink";

const SECTIONS = Object.keys(texts.section) as Section[];

/** `isLive` says that a run works on the project. */
export function Sections({ projectId, current, isLive }: { projectId: string; current: Section; isLive: boolean }) {
  const nav = useRef<HTMLElement>(null);
  // On a small page, the links do not all fit.
  useEffect(() => void nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [current]);
  return (
    <nav ref={nav} className="sections" aria-label={texts.sections}>
      {SECTIONS.map((section) => (
        <PageLink key={section} to={projectPath(projectId, section)} aria-current={section === current ? "page" : undefined}>
          {texts.section[section]}
          {section === "conversations" && isLive && <span className="item-live" role="img" aria-label={words.shell.list.live} title={words.shell.list.live} />}
        </PageLink>
      ))}
    </nav>
  );
}
