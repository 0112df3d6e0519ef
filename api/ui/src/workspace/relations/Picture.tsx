// A picture of the relations: the entities are links, in a column for each kind. The list below it has the same content.
import { useId, useMemo } from "react";

import type { Edge } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { follow } from "../../visit";
import { entityPath } from "../address";
import { NODE, pictureOf } from "./layout";

/** So many characters fit into a node. */
const SHOWN = 20;

type Props = { edges: readonly Edge[]; projectId: string; nameOf(id: string): string | undefined };

export function Picture({ edges, projectId, nameOf }: Props) {
  const picture = useMemo(() => pictureOf(edges), [edges]);
  const arrow = useId();
  return (
    <div className="picture" tabIndex={0} role="group" aria-label={texts.relations.picture}>
      <svg width={picture.width} height={picture.height} viewBox={`0 0 ${picture.width} ${picture.height}`}>
        <defs>
          <marker id={arrow} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8Z" className="picture-arrow" />
          </marker>
        </defs>
        {picture.columns.map(({ kind, x }) => (
          <text key={kind} x={x} y={20} className="picture-column">
            {texts.kind[kind]}
          </text>
        ))}
        {picture.edges.map(({ edge, path }) => (
          <path key={edge.id} d={path} className="picture-edge" markerEnd={`url(#${arrow})`} />
        ))}
        {picture.edges.map(({ edge, label }) => (
          <text key={edge.id} x={label.x} y={label.y} className="picture-label" textAnchor="middle" dominantBaseline="middle">
            {texts.relations.name[edge.relation] ?? edge.relation}
          </text>
        ))}
        {picture.nodes.map(({ kind, id, x, y }) => {
          const name = nameOf(id) ?? texts.kind[kind];
          const path = entityPath(kind, id, projectId);
          return (
            <a key={id} href={path} className="picture-node" data-kind={kind} onClick={(event) => follow(event, path)}>
              <title>{name}</title>
              <rect x={x} y={y} width={NODE.width} height={NODE.height} rx={10} />
              <text x={x + 12} y={y + NODE.height / 2} dominantBaseline="middle">
                {shortened(name)}
              </text>
            </a>
          );
        })}
      </svg>
    </div>
  );
}

function shortened(name: string): string {
  const characters = [...name];
  // A Chinese character is about as wide as two letters.
  const width = (character: string) => (/[\u2E80-\uFFEF]/.test(character) ? 2 : 1);
  let used = 0;
  const kept = characters.filter((character) => (used += width(character)) <= SHOWN);
  return kept.length < characters.length ? `${kept.join("").trimEnd()}…` : name;
}
