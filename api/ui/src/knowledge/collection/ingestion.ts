// Follows the ingestion of a document by the events of its run.
import { path } from "holdfast-client/address";
import { delayAfter, pause } from "holdfast-client/backoff";
import { problemFrom } from "holdfast-client/problem";
import { follow } from "holdfast-client/processor";
import { SILENCE_MS } from "holdfast-client/watchdog";

import { authorization } from "../../client/token";

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

/** Returns the step of an event's data; "ended" for the last event of the run, and undefined for any other event. */
export function stepIn(data: string): Step | "ended" | undefined {
  const event = JSON.parse(data) as { type: string } & Step;
  if (event.type === "document.progress") return { stage: event.stage, done: event.done, total: event.total };
  return /^run\.(completed|failed|cancelled)$/.test(event.type) ? "ended" : undefined;
}

/** Resolves when the run has ended, or is unknown to the server. Rejects with the signal's reason. */
export async function followIngestion(runId: string, { signal, onStep }: FollowingIngestion): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    let hasEnded = false;
    try {
      const answer = await follow(path`/v1/runs/${runId}/events`, { headers: authorization() }, {
        timeout: SILENCE_MS,
        signal,
        onProgress: (progress) => {
          const step = progress.kind === "event" ? stepIn(progress.frame.data) : undefined;
          if (step === "ended") hasEnded = true;
          else if (step) onStep(step);
        },
      });
      if (hasEnded || answer.kind !== "events") return;
    } catch (error) {
      signal.throwIfAborted();
      if (hasEnded || !problemFrom(error).mayPass) return;
    }
    await pause(delayAfter(failures), signal);
  }
}
