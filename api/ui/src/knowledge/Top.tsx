// The line above each page of the knowledge: the way back, and the actions of the page.
import type { ReactNode } from "react";

import { words } from "../i18n";
import { texts } from "../i18n/knowledge";
import { Icon } from "../shell/controls/icons";
import { PageLink } from "../workspace/PageLink";
import { COLLECTIONS_PATH } from "./address";
import type { Frame } from "./frame";
import "../workspace/Top.css";

type Props = {
  frame: Frame;
  /** The page above this one, below the list of collections. */
  above?: { name: string; to: string };
  /** Whether this is the list of collections itself. */
  isRoot?: boolean;
  /** The actions of the page. */
  children?: ReactNode;
};

export function Top({ frame, above, isRoot = false, children }: Props) {
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
        <PageLink to={COLLECTIONS_PATH} aria-current={isRoot ? "page" : undefined}>
          {texts.title}
        </PageLink>
        {above && (
          <span className="top-step">
            <span aria-hidden="true">/</span>
            <PageLink to={above.to} dir="auto">
              {above.name}
            </PageLink>
          </span>
        )}
      </nav>
      {children}
    </header>
  );
}
