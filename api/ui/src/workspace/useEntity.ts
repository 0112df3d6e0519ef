// This hook reads one entity, and follows its changes on this page.
import { Problem } from "holdfast-client/problem";
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useMemo, useState } from "react";

import { type Entity, type EntityKind, readEntity } from "../client/workspace";
import { Shown } from "../shown";
import { useShown } from "../useShown";
import { type News, news, onElsewhere, onUndone } from "./news";

export interface Known {
  entity?: Entity;
  /** It does not exist, or belongs to another user. */
  isMissing: boolean;
  isFailed: boolean;
  readAgain(): void;
}

export function useEntity(kind: EntityKind, id: string): Known {
  const shown = useMemo(() => {
    const apply = (entity: Entity | undefined, change: News) => (entity && change.kind === kind && change.id === id ? (change.after(entity) ?? entity) : entity);
    return new Shown<Entity | undefined, News>(undefined, news, apply);
  }, [kind, id]);
  const entity = useShown(shown);
  const [failure, setFailure] = useState<"missing" | "failed">();
  const readAgain = useCallback(() => {
    shown.read(() => readEntity(kind, id), (_, read) => read).then(
      () => setFailure(undefined),
      (error: unknown) => setFailure(error instanceof Problem && (error.status === 404 || error.status === 400) ? "missing" : "failed"),
    );
  }, [shown, kind, id]);
  useEffect(() => {
    readAgain();
    const stops = [onWake(readAgain), onUndone(readAgain), onElsewhere(readAgain)];
    return () => stops.forEach((stop) => stop());
  }, [readAgain]);
  return { entity, isMissing: failure === "missing", isFailed: failure === "failed" && !entity, readAgain };
}
