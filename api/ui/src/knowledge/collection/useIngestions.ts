// This hook follows the runs of documents that are not ready yet. A browser has six connections to a server, so it
// follows the oldest ones, and reads the others again from time to time.
import { patiently } from "holdfast-client/patience";
import { useEffect, useRef, useState } from "react";

import { type KnowledgeDocument, readDocument } from "../../client/knowledge";
import { followIngestion, type Step } from "./ingestion";

const FOLLOWED = 2;
const READ_AFTER_MS = 4_000;

export const isUnfinished = ({ status }: KnowledgeDocument) => status === "queued" || status === "processing";

/** Returns the newest steps by the ids of their documents. `onChanged` receives a document whose run has ended. */
export function useIngestions(documents: readonly KnowledgeDocument[], onChanged: (document: KnowledgeDocument) => void, readAgain: () => void): ReadonlyMap<string, Step> {
  const [steps, setSteps] = useState<ReadonlyMap<string, Step>>(new Map());
  const open = useRef(new Map<string, AbortController>());
  const newest = useRef(onChanged);
  useEffect(() => {
    newest.current = onChanged;
  });
  const unfinished = documents.filter((document) => isUnfinished(document) && document.run_id !== null);
  // The oldest documents are the last ones, and workers take them first.
  const followed = unfinished.slice(-FOLLOWED);
  const key = followed.map(({ run_id }) => run_id).join();
  useEffect(() => {
    const { current } = open;
    const wanted = new Map(followed.map(({ id, run_id }) => [run_id!, id]));
    current.forEach((abort, runId) => wanted.has(runId) || (abort.abort(), current.delete(runId)));
    for (const [runId, id] of wanted) {
      if (current.has(runId)) continue;
      const abort = new AbortController();
      current.set(runId, abort);
      const { signal } = abort;
      const onStep = (step: Step) => setSteps((before) => new Map(before).set(id, step));
      followIngestion(runId, { signal, onStep })
        .then(() => patiently(() => readDocument(id), { signal }))
        .then(
          (document) => {
            if (signal.aborted) return;
            newest.current(document);
            // Another run of the document begins with its own first step.
            setSteps((before) => new Map([...before].filter(([known]) => known !== id)));
          },
          // Another page may have deleted the document.
          () => signal.aborted || readAgain(),
        );
    }
  }, [key]);
  useEffect(() => {
    const { current } = open;
    return () => {
      current.forEach((abort) => abort.abort());
      current.clear();
    };
  }, []);
  const hasOthers = unfinished.length > followed.length;
  useEffect(() => {
    if (!hasOthers) return;
    const timer = setInterval(readAgain, READ_AFTER_MS);
    return () => clearInterval(timer);
  }, [hasOthers, readAgain]);
  return steps;
}
