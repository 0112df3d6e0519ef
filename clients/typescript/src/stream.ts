/** One stream of a run's events over as many connections as it needs. */
import { ENDS, follows } from "./answer.js";
import { Pauses } from "./pauses.js";
import { BrokenLog, CUT_OFF, Problem, problemOf } from "./problem.js";
import { FrameReader, streamOf } from "./sse.js";
import { SILENCE_MS, Watchdog, piecesOf } from "./watchdog.js";
import type { RunEvent } from "./wire.js";

/** A server that never sends the next event would keep a client busy for ever. */
const MOST_GAPS = 5;

export interface FollowedRun {
  /** Requests the events after a cursor. */
  open(cursor: string, signal: AbortSignal): Promise<Response>;
  after: string;
  patience: number;
  signal?: AbortSignal;
}

/** Yields each event once and in order, up to the terminal event. */
export async function* followRun({ open, after, patience, signal }: FollowedRun): AsyncGenerator<RunEvent, void, void> {
  const silence = Math.min(SILENCE_MS, patience);
  const pauses = new Pauses(patience, silence);
  let cursor = after;
  let gaps = 0;
  for (;;) {
    const watchdog = new Watchdog(silence, signal);
    let problem = new Problem(0, CUT_OFF, "The stream ended before the run.");
    try {
      const response = await open(cursor, watchdog.signal);
      if (!response.ok) throw await problemOf(response);
      if (response.status === 204) return;
      const frames = new FrameReader();
      for await (const bytes of piecesOf(streamOf(response), watchdog)) {
        if (gaps === 0) pauses.succeed();
        for (const { data } of frames.read(bytes)) {
          const event = JSON.parse(data) as RunEvent;
          if (!follows(cursor, event.id, "base" in event ? event.base : undefined)) {
            const gap = `Event ${event.id} does not follow ${cursor}.`;
            throw ++gaps < MOST_GAPS ? new Problem(0, CUT_OFF, gap) : new BrokenLog(gap);
          }
          cursor = event.id;
          gaps = 0;
          pauses.succeed();
          yield event;
          if (ENDS.includes(event.type)) return;
        }
        pauses.retry = frames.retry ?? pauses.retry;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof Problem) || !error.mayPass) throw error;
      problem = watchdog.problem ?? error;
    } finally {
      watchdog.end();
    }
    await pauses.next(problem, signal, cursor);
  }
}
