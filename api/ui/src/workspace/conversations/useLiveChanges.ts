// While runs work on a project, this hook follows their events, and tells the pages what their calls have changed.
import { useEffect } from "react";

import { Problem } from "holdfast-client/problem";

import { followRun, isLast, type RunEvent } from "../../client/events";
import { readEntity } from "../../client/workspace";
import { hasChanged } from "../../messages/entities";
import { type Kind } from "../address";
import { tellChanged, tellDeleted, tellElsewhere } from "../news";

/** A browser has six connections to a server, so the page follows so many runs. */
const FOLLOWED = 2;
/** So many changed entities are cheaper to read one by one than with all lists. */
const FEW = 12;

/** `runIds` are the runs at work. `onEnded` is called when one of them has ended. */
export function useLiveChanges(runIds: readonly string[], onEnded: () => void): void {
  const followed = runIds.slice(0, FOLLOWED).join();
  useEffect(() => {
    if (followed === "") return;
    const left = new AbortController();
    const changed = new Reader(left.signal);
    for (const runId of followed.split(",")) {
      const onEvent = (event: RunEvent) => {
        changed.add(changedBy(event));
        if (hasUnnamedChanges(event)) tellElsewhere();
      };
      followRun(runId, { signal: left.signal, onEvent }).then(onEnded, () => {});
    }
    return () => left.abort();
  }, [followed, onEnded]);
}

interface Named {
  kind: Kind;
  id: string;
}

/** Returns the entities that a call has changed, by its event. */
export function changedBy(event: RunEvent): readonly Named[] {
  if (event.type !== "tool_call.completed") return [];
  const { name, entities } = event as RunEvent & { name: string; entities?: Named[] };
  return hasChanged(name) ? (entities ?? []) : [];
}

/** The calls of a step, and relations, are not in the events of the run. */
export function hasUnnamedChanges(event: RunEvent): boolean {
  return event.type === "plan_step.completed" || event.type === "subagent.completed" || isLast(event);
}

/** Reads changed entities, and those that change meanwhile after these. */
class Reader {
  readonly #waiting = new Map<string, Named>();
  #isReading = false;

  constructor(readonly signal: AbortSignal) {}

  add(entities: readonly Named[]): void {
    entities.forEach((entity) => this.#waiting.set(entity.id, entity));
    if (!this.#isReading && entities.length > 0) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isReading = true;
    while (this.#waiting.size > 0 && !this.signal.aborted) {
      const entities = [...this.#waiting.values()];
      this.#waiting.clear();
      if (entities.length > FEW) tellElsewhere();
      else await Promise.all(entities.map((entity) => this.#read(entity)));
    }
    this.#isReading = false;
  }

  async #read({ kind, id }: Named): Promise<void> {
    try {
      tellChanged(kind, await readEntity(kind, id, { signal: this.signal }));
    } catch (error) {
      if (error instanceof Problem && error.status === 404) tellDeleted(kind, id);
    }
  }
}
