// Relations and changes have ids: this file reads the names of their entities, each once, and follows changes of them.
import { useEffect } from "react";

import { type EntityKind, readEntities, readEntity } from "../client/workspace";
import { Shown } from "../shown";
import { useShown } from "../useShown";
import { nameOf } from "./kinds";
import { type News, news } from "./news";

type Names = ReadonlyMap<string, string>;

const names = new Shown<Names, News>(new Map(), news, (names, { id, after }) => {
  const entity = after(undefined);
  return entity ? withNames(names, [[id, nameOf(entity)]]) : names;
});
names.subscribe(() => {});

/** The entities whose names were read, or are being read. */
const asked = new Set<string>();

function withNames(names: Names, learned: readonly (readonly [string, string])[]): Names {
  return learned.every(([id, name]) => names.get(id) === name) ? names : new Map([...names, ...learned]);
}

/** Returns undefined until the name arrives, and for an entity that does not exist any more. */
export function useName(kind: EntityKind, id: string | undefined): string | undefined {
  const nameOfId = useNames(id === undefined ? [] : [{ kind, id }]);
  return id === undefined ? undefined : nameOfId(id);
}

/** Returns a function that knows the names; the component renders again when more of them arrive. */
export function useNames(entities: readonly { kind: EntityKind; id: string }[], projectId?: string): (id: string) => string | undefined {
  const known = useShown(names);
  const missing = [...new Map(entities.map((one) => [one.id, one])).values()].filter(({ id }) => !known.has(id) && !asked.has(id));
  const key = missing.map(({ id }) => id).join();
  useEffect(() => readNames(missing, projectId), [key, projectId]);
  return (id) => known.get(id);
}

/** So many missing names are cheaper to read one by one than with a list. */
const FEW = 3;
const PAGE = 200;

function readNames(missing: readonly { kind: EntityKind; id: string }[], projectId: string | undefined): void {
  missing.forEach(({ id }) => asked.add(id));
  for (const kind of new Set(missing.map(({ kind }) => kind))) {
    const wanted = missing.filter((one) => one.kind === kind).map(({ id }) => id);
    void names.readMore(() => namesOf(kind, wanted, projectId), withNames);
  }
}

/** Returns the names that the server has. */
async function namesOf(kind: EntityKind, wanted: readonly string[], projectId: string | undefined): Promise<[string, string][]> {
  const isMany = projectId !== undefined && kind !== "project" && wanted.length > FEW;
  const page = isMany ? await readEntities(kind, { project_id: projectId }, { limit: PAGE }).catch(() => undefined) : undefined;
  const listed = new Map(page?.items.map((entity) => [entity.id, nameOf(entity)]));
  const rest = await Promise.all(wanted.filter((id) => !listed.has(id)).map((id) => readEntity(kind, id).catch(() => undefined)));
  return [...listed, ...rest.flatMap((entity): [string, string][] => (entity ? [[entity.id, nameOf(entity)]] : []))];
}
