// Follows the ingestion of a document by the events of its run.
import { followRun, type RunEvent } from "../../client/events";

/** A step of an ingestion, and how far it is. */
export interface Step {
  stage: string;
  done: number;
  total: number;
}

export interface FollowingIngestion {
  signal: AbortSignal;
  onStep(step: Step): void;
}

/** Returns the step of an event; undefined for any other event. */
export function stepIn(event: RunEvent): Step | undefined {
  if (event.type !== "document.progress") return undefined;
  const { stage, done, total } = event as RunEvent & Step;
  return { stage, done, total };
}

/** Resolves when the run has ended, or is unknown to the server. Rejects with the signal's reason. */
export async function followIngestion(runId: string, { signal, onStep }: FollowingIngestion): Promise<void> {
  await followRun(runId, {
    signal,
    onEvent: (event) => {
      const step = stepIn(event);
      if (step) onStep(step);
    },
  });
}
