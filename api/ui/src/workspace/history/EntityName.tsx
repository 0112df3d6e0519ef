// The name of an entity, as a link to its page. The page reads a name that it does not know once.
import type { EntityKind } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { entityPath } from "../address";
import { PageLink } from "../PageLink";
import { useName } from "../names";

export function EntityName({ kind, id, name, projectId }: { kind: EntityKind; id: string; name?: string; projectId?: string }) {
  const read = useName(kind, name === undefined ? id : undefined);
  const shown = name ?? read;
  return (
    <PageLink to={entityPath(kind, id, projectId)} dir="auto">
      {shown ?? `${texts.kind[kind]} ${id.slice(-6)}`}
    </PageLink>
  );
}
