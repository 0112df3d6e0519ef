// The entities that an answer or a call is about are links to their pages.
import { follow } from "../visit";
import { entityPath } from "../workspace/address";
import type { NamedEntity } from "./entities";
import "./workspace.css";

export function WorkspaceLinks({ entities }: { entities: readonly NamedEntity[] }) {
  return (
    <ul className="entity-links" role="list">
      {entities.map(({ kind, id, name }) => {
        const path = entityPath(kind, id);
        return (
          <li key={id}>
            <a href={path} data-kind={kind} dir="auto" onClick={(event) => follow(event, path)}>
              {name}
            </a>
          </li>
        );
      })}
    </ul>
  );
}
