// Relations and changes have ids: this file reads the names of their entities, each once, and follows changes of them.
import { useEffect, useSyncExternalStore } from "react";

import { type EntityKind, readEntities, readEntity } from "../client/workspace";
import { nameOf } from "./kinds";
import { onNews } from "./news";

const names = new Map<string, string | undefined>();
const listeners = new Set<() => void>();
let version = 0;

function learn(id: string, name: string | undefined) {
  if (names.get(id) === name && names.has(id)) return;
  names.set(id, name);
  version += 1;
  listeners.forEach((listener) => listener());
}

onNews(({ id, entity }) => entity && learn(id, nameOf(entity)));

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Returns undefined until the name arrives, and for an entity that does not exist any more. */
export function useName(kind: EntityKind, id: string | undefined): string | undefined {
  useNames(id === undefined ? [] : [{ kind, id }]);
  return id === undefined ? undefined : names.get(id);
}

/** Returns a function that knows the names; the component renders again when more of them arrive. */
export function useNames(entities: readonly { kind: EntityKind; id: string }[], projectId?: string): (id: string) => string | undefined {
  const missing = [...new Map(entities.map((one) => [one.id, one])).values()].filter(({ id }) => !names.has(id));
  const key = missing.map(({ id }) => id).join();
  useEffect(() => void readNames(missing, projectId), [key, projectId]);
  useSyncExternalStore(subscribe, () => version);
  return (id) => names.get(id);
}

/** So many missing names are cheaper to read one by one than with a list. */
const FEW = 3;
const PAGE = 200;

async function readNames(missing: readonly { kind: EntityKind; id: string }[], projectId: string | undefined): Promise<void> {
  missing.forEach(({ id }) => names.set(id, undefined));
  const kinds = [...new Set(missing.map(({ kind }) => kind))];
  for (const kind of kinds) {
    const wanted = missing.filter((one) => one.kind === kind);
    if (projectId !== undefined && kind !== "project" && wanted.length > FEW) {
      const page = await readEntities(kind, { project_id: projectId }, { limit: PAGE }).catch(() => undefined);
      page?.items.forEach((entity) => learn(entity.id, nameOf(entity)));
    }
    const rest = wanted.filter(({ id }) => names.get(id) === undefined);
    await Promise.all(rest.map(({ id }) => readEntity(kind, id).then((entity) => learn(id, nameOf(entity)), () => {})));
  }
}
