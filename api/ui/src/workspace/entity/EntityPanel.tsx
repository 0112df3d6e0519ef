// An open entity of a project: its fields, its text, its relations and its history.
import { useCallback, useEffect, useRef, useState } from "react";

import type { Entity } from "../../client/workspace";
import { words } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { Moment } from "../../messages/SentAt";
import { Icon } from "../../shell/controls/icons";
import { visit } from "../../visit";
import { entityPath, type InnerKind, PLURALS, projectPath } from "../address";
import { NameField } from "../controls/NameField";
import { StateChoice } from "../controls/StateChoice";
import { remove } from "../edits";
import { Gone } from "../Gone";
import { EntityHistory } from "../history/History";
import { nameOf } from "../kinds";
import { EntityRelations } from "../relations/EntityRelations";
import { LongField } from "../text/LongField";
import { useEntity } from "../useEntity";
import { EntityFacts } from "./EntityFacts";
import "./EntityPanel.css";

type Props = { kind: InnerKind; id: string; projectId: string };

export function EntityPanel({ kind, id, projectId }: Props) {
  const known = useEntity(kind, id);
  const { entity } = known;
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  const close = () => {
    visit(projectPath(projectId, PLURALS[kind]));
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`.row-name[href$="${id}"]`)?.focus());
  };
  return (
    <section
      ref={panel}
      className="panel"
      tabIndex={-1}
      aria-label={entity ? nameOf(entity) : texts.list.loading}
      onKeyDown={(event) => {
        // Fields and menus have their own Esc.
        if (event.key === "Escape" && !event.defaultPrevented && event.target instanceof HTMLElement && !event.target.matches("textarea, input, select")) close();
      }}
    >
      <div className="panel-top">
        <span className="kind">{texts.kind[kind]}</span>
        {entity && (
          <button type="button" className="icon-button" aria-label={texts.entity.delete} title={texts.entity.delete} onClick={() => removeEntity(kind, entity, projectId)}>
            <Icon name="delete" />
          </button>
        )}
        <button type="button" className="icon-button" aria-label={words.shell.close} title={words.shell.close} onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      {entity ? <Content kind={kind} entity={entity} /> : <Gone known={known} />}
    </section>
  );
}

function Content({ kind, entity }: { kind: InnerKind; entity: Entity }) {
  return (
    <>
      <NameField kind={kind} entity={entity} as="h1" />
      <div className="project-facts">
        <StateChoice kind={kind} entity={entity} />
        <EntityFacts kind={kind} entity={entity} />
      </div>
      <section className="panel-part">
        <h2 className="unseen">{kind === "document" || kind === "output" ? texts.entity.text[kind] : texts.entity.text.other}</h2>
        <LongField kind={kind} entity={entity} />
      </section>
      <EntityRelations kind={kind} entity={entity} />
      <FoldedHistory kind={kind} id={entity.id} />
      <p className="panel-foot">
        {texts.entity.created} <Moment at={entity.created_at} />
      </p>
    </>
  );
}

/** The page reads the history when the reader opens it. */
function FoldedHistory({ kind, id }: { kind: InnerKind; id: string }) {
  const [isOpen, setIsOpen] = useState(false);
  const toggle = useCallback(() => setIsOpen((before) => !before), []);
  return (
    <section className="panel-part">
      <h2>
        <button type="button" className="group-head" aria-expanded={isOpen} onClick={toggle}>
          <Icon name="down" />
          {texts.entity.history}
        </button>
      </h2>
      {isOpen && <EntityHistory kind={kind} id={id} />}
    </section>
  );
}

function removeEntity(kind: InnerKind, entity: Entity, projectId: string) {
  void remove(kind, entity, {
    onDeleted: () => visit(projectPath(projectId, PLURALS[kind])),
    onRestored: () => visit(entityPath(kind, entity.id, projectId)),
  });
}
