// This hook reads one entity, and follows its changes on this page.
import { Problem } from "holdfast-client/problem";
import { onWake } from "holdfast-client/wake";
import { useCallback, useEffect, useState } from "react";

import { type Entity, type EntityKind, readEntity } from "../client/workspace";
import { onNews, onUndone } from "./news";

export interface Known {
  entity?: Entity;
  /** It does not exist, or belongs to another user. */
  isMissing: boolean;
  isFailed: boolean;
  readAgain(): void;
}

export function useEntity(kind: EntityKind, id: string): Known {
  const [entity, setEntity] = useState<Entity>();
  const [failure, setFailure] = useState<"missing" | "failed">();
  const readAgain = useCallback(() => {
    readEntity(kind, id).then(
      (read) => {
        setEntity(read);
        setFailure(undefined);
      },
      (error: unknown) => setFailure(error instanceof Problem && (error.status === 404 || error.status === 400) ? "missing" : "failed"),
    );
  }, [kind, id]);
  useEffect(() => {
    readAgain();
    const stops = [
      onWake(readAgain),
      onUndone(readAgain),
      onNews((news) => {
        if (news.kind !== kind || news.id !== id) return;
        // An item of a list has no body.
        if (news.entity) setEntity((before) => ({ ...before, ...news.entity! }));
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }, [kind, id, readAgain]);
  return { entity, isMissing: failure === "missing", isFailed: failure === "failed" && !entity, readAgain };
}
