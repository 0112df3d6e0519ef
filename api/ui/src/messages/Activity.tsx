// An activity is the model's work between two texts: one line during and after it, which opens to every thought and
// call.
import { useEffect, useRef, useState } from "react";

import { words } from "../i18n";
import { type Doing, isFailedCall, isUnderWay, nowDoing, stateLine, wasDone } from "./doing";
import { deedOf } from "./deeds";
import { Disclosure } from "./Disclosure";
import { durationIn } from "./duration";
import { Icon, Spinner } from "./icons";
import { Markdown } from "./markdown/Markdown";
import type { Item } from "./segments";
import { CallDetail, ToolCall } from "./ToolCall";

type Props = {
  items: readonly Item[];
  /** Whether the run is working on this activity. */
  isActive: boolean;
  /** Whether the run has not ended. */
  isLive: boolean;
  state?: Doing;
  durations: ReadonlyMap<string, number>;
  /** The runs that answer calls. */
  runs: ReadonlyMap<string, string>;
};

export function Activity({ items, isActive, isLive, state, durations, runs }: Props) {
  // The page does not know the start of an activity that began before the page opened.
  const [isSeenWhole] = useState(isActive && items.every(isUnderWay));
  const elapsed = useElapsed(isActive && isSeenWhole);
  const calls = items.flatMap((item) => (item.kind === "call" ? [item.call] : []));
  const taken = calls.reduce((sum, call) => sum + (durations.get(call.toolCallId) ?? 0), 0);
  const measured = items.reduce((sum, item) => sum + (item.kind === "reasoning" ? (item.durationMs ?? 0) : 0), 0);
  const thought = elapsed ?? measured;
  const thinking = thought >= 1_000 ? durationIn(words.duration, thought) : undefined;
  const only = items.length === 1 ? calls[0] : undefined;
  const isFailed = !isActive && isFailedCall(items);
  return (
    <Disclosure
      line={
        <span className="activity" data-active={isActive || undefined} data-failed={isFailed || undefined}>
          {isActive ? <Spinner /> : <Icon name={isFailed ? "cross" : calls.length === items.length ? "tool" : "thought"} />}
          <span className="activity-line">{isActive ? nowDoing(words.activity, items, state) : wasDone(words.activity, items, thinking)}</span>
          <span className="activity-time">{isActive ? elapsed !== undefined && ticking(elapsed) : taken > 0 && durationIn(words.duration, taken)}</span>
        </span>
      }
    >
      {() =>
        only ? (
          <CallDetail call={only} runId={runs.get(only.toolCallId)} isNamed={deedOf(words.activity.deeds, only) !== undefined} />
        ) : (
          <ol className="activity-items">
            {items.map((item, index) => (
              <li key={index}>
                {item.kind === "call" ? (
                  <ToolCall call={item.call} isLive={isLive} duration={durations.get(item.call.toolCallId)} runId={runs.get(item.call.toolCallId)} />
                ) : (
                  <Markdown text={item.text} isStreaming={item.isStreaming && isActive} />
                )}
              </li>
            ))}
          </ol>
        )
      }
    </Disclosure>
  );
}

/** Returns whole seconds, once they are long enough to show. */
function ticking(elapsed: number): string | undefined {
  return elapsed < 2_000 ? undefined : durationIn(words.duration, Math.floor(elapsed / 1_000) * 1_000);
}

/** Returns how long the activity has been active on this page, or undefined if it has not. */
function useElapsed(isActive: boolean): number | undefined {
  const since = useRef<number>(undefined);
  const [elapsed, setElapsed] = useState<number>();
  useEffect(() => {
    if (!isActive) return;
    since.current ??= performance.now();
    const measure = () => setElapsed(performance.now() - since.current!);
    const timer = setInterval(measure, 1_000);
    return () => {
      clearInterval(timer);
      measure();
    };
  }, [isActive]);
  return elapsed;
}

/** Shown while the run works and has no content yet. It looks like an activity that the reader cannot open. */
export function Working({ state }: { state?: Doing }) {
  return (
    <p className="working activity" data-active>
      <Spinner />
      <span className="activity-line">{stateLine(words.activity, state)}</span>
    </p>
  );
}
