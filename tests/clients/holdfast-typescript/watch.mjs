// The stream processor of the package.
import { follow } from "holdfast-client";

/** Calls `show` with each event of a run that comes over one connection. */
export function watch(base, runId, show) {
  return follow(`${base}/v1/runs/${runId}/events`, {}, {
    timeout: 240_000, // ms of silence; heartbeats are no silence
    onProgress: (progress) => progress.kind === "event" && show(JSON.parse(progress.frame.data)),
  });
}
