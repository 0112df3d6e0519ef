/** One stream of a run's events over as many connections as it needs. */
import { ENDS, follows } from "./answer.js";
import { framesOf, Watchdog } from "./frames.js";
import { Pauses } from "./pauses.js";
import { BrokenLog, Problem, problemOf, StreamCut } from "./problem.js";
import type { RunEvent } from "./wire.js";

/** A server that never sends the next event would keep a client busy for ever. */
const MOST_GAPS = 5;

export interface Following {
  /** Requests the events after a cursor. */
  open(cursor: string, signal: AbortSignal): Promise<Response>;
  after: string;
  patience: number;
  signal?: AbortSignal;
}

/** Yields each event once and in order, up to the terminal event. */
export async function* followRun({ open, after, patience, signal }: Following): AsyncGenerator<RunEvent, void, void> {
  const pauses = new Pauses(patience);
  let cursor = after;
  let gaps = 0;
  for (;;) {
    const watchdog = new Watchdog(signal);
    let cause: unknown = new StreamCut("The stream ended before the run.");
    try {
      const response = await open(cursor, watchdog.signal);
      if (response.status === 204) return;
      if (!response.ok) throw await problemOf(response);
      if (gaps === 0) pauses.succeed();
      for await (const { data, retry } of framesOf(response, watchdog.feed)) {
        pauses.retry = retry ?? pauses.retry;
        if (data === undefined) continue;
        const event = JSON.parse(data) as RunEvent;
        if (!follows(cursor, event.id, "base" in event ? event.base : undefined)) {
          const gap = `Event ${event.id} does not follow ${cursor}.`;
          throw ++gaps < MOST_GAPS ? new StreamCut(gap) : new BrokenLog(gap);
        }
        cursor = event.id;
        gaps = 0;
        pauses.succeed();
        yield event;
        if (ENDS.includes(event.type)) return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof BrokenLog || (error instanceof Problem && !error.mayPass)) throw error;
      cause = error;
    } finally {
      watchdog.end();
    }
    await pauses.next(cause, cause instanceof Problem ? cause.retryAfter : undefined, signal, cursor);
  }
}
