// This file follows the events of a run.
import { path } from "holdfast-client/address";
import { delayAfter, pause } from "holdfast-client/backoff";
import { problemFrom } from "holdfast-client/problem";
import { follow } from "holdfast-client/processor";
import { SILENCE_MS } from "holdfast-client/watchdog";

import { authorization } from "./token";

/** The data of an event. */
export interface RunEvent {
  type: string;
}

const LAST = /^run\.(completed|failed|cancelled)$/;

/** Whether it is the last event of its run. */
export function isLast({ type }: RunEvent): boolean {
  return LAST.test(type);
}

export interface Following {
  signal: AbortSignal;
  /** After a broken connection, events may come again. */
  onEvent(event: RunEvent): void;
}

/** Resolves when the run has ended, or is unknown to the server. Rejects with the signal's reason. */
export async function followRun(runId: string, { signal, onEvent }: Following): Promise<void> {
  for (let failures = 1; ; failures += 1) {
    let hasEnded = false;
    try {
      const answer = await follow(path`/v1/runs/${runId}/events`, { headers: authorization() }, {
        timeout: SILENCE_MS,
        signal,
        onProgress: (progress) => {
          if (progress.kind !== "event") return;
          const event = JSON.parse(progress.frame.data) as RunEvent;
          hasEnded ||= isLast(event);
          onEvent(event);
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
