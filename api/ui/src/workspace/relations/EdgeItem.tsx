// One relation in words: from what, how, to what.
import type { Edge, EntityKind } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import { entityPath } from "../address";
import { PageLink } from "../PageLink";

type Props = {
  edge: Edge;
  nameOf(id: string): string | undefined;
  /** The entity on whose page the relation stands. */
  here?: string;
  onRemove(edge: Edge): void;
};

export function EdgeItem({ edge, nameOf, here, onRemove }: Props) {
  const relation = texts.relations.name[edge.relation] ?? edge.relation;
  const text = `${nameOf(edge.from_id) ?? texts.relations.unknown} ${relation} ${nameOf(edge.to_id) ?? texts.relations.unknown}`;
  const end = (kind: EntityKind, id: string) =>
    id === here ? (
      <em>{texts.relations.this}</em>
    ) : (
      <PageLink to={entityPath(kind, id, edge.project_id)} dir="auto">
        {nameOf(id) ?? texts.kind[kind]}
      </PageLink>
    );
  return (
    <li className="edge">
      <span className="edge-text">
        {end(edge.from_kind, edge.from_id)} <span className="edge-relation">{relation}</span> {end(edge.to_kind, edge.to_id)}
      </span>
      <button type="button" className="icon-button" aria-label={texts.relations.remove(text)} title={texts.relations.remove(text)} onClick={() => onRemove(edge)}>
        <Icon name="close" />
      </button>
    </li>
  );
}
