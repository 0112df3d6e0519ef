// The line above each page of the workspace: the way back, and the actions of the page.
import type { ReactNode } from "react";

import { words } from "../i18n";
import { texts } from "../i18n/workspace";
import { Icon } from "../shell/controls/icons";
import { PROJECTS_PATH } from "./address";
import type { Frame } from "./frame";
import { PageLink } from "./PageLink";
import "./Top.css";

type Props = {
  frame: Frame;
  /** The pages above this one, below the list of projects. */
  path?: { name: string; to: string }[];
  /** Whether this is the list of projects itself. */
  isRoot?: boolean;
  /** The actions of the page. */
  children?: ReactNode;
};

export function Top({ frame, path = [], isRoot = false, children }: Props) {
  return (
    <header className="head top">
      {!frame.isListShown && (
        <button type="button" className="icon-button" aria-label={words.shell.list.show} title={words.shell.list.show} onClick={frame.onShowList}>
          <Icon name="list" />
        </button>
      )}
      <nav className="top-path" aria-label={texts.path}>
        <PageLink to="/" aria-label={texts.back} title={texts.back}>
          <Icon name="back" />
        </PageLink>
        <PageLink to={PROJECTS_PATH} aria-current={isRoot ? "page" : undefined}>
          {texts.projects}
        </PageLink>
        {path.map(({ name, to }) => (
          <span key={to} className="top-step">
            <span aria-hidden="true">/</span>
            <PageLink to={to} dir="auto">
              {name}
            </PageLink>
          </span>
        ))}
      </nav>
      {children}
    </header>
  );
}
