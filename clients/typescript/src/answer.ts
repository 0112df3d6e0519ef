/** The order of events, and the text of an answer. */
import type { RunEvent } from "./wire.js";

/** The types of the terminal events. */
export const ENDS: readonly string[] = ["run.completed", "run.failed", "run.cancelled"];

type Position = readonly [attempt: number, n: number];

function positionOf(id: string): Position {
  const [attempt, n] = id.split("-");
  return [Number(attempt), Number(n)];
}

const isUpTo = (a: Position, b: Position): boolean => a[0] < b[0] || (a[0] === b[0] && a[1] <= b[1]);

/** Whether an event continues the log after the cursor without a gap. */
export function follows(cursor: string, id: string, base: unknown): boolean {
  const have = positionOf(cursor);
  const event = positionOf(id);
  const begins = event[1] === 1 && typeof base === "string" && isUpTo(positionOf(base), have);
  return !isUpTo(event, have) && (begins || (event[0] === have[0] && event[1] === have[1] + 1));
}

/** Folds events to the answer's text. After a worker's death, an event's `base` takes back later pieces. */
export class Answer {
  #pieces: { position: Position; text: string }[] = [];

  apply(event: RunEvent): void {
    if ("base" in event && typeof event.base === "string") {
      const base = positionOf(event.base);
      this.#pieces = this.#pieces.filter(({ position }) => isUpTo(position, base));
    }
    if (event.type === "message.delta") this.#pieces.push({ position: positionOf(event.id), text: event.text });
  }

  get text(): string {
    return this.#pieces.map(({ text }) => text).join("");
  }
}
