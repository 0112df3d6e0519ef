// This file writes the one line that describes an activity.
import { nameOf, standingOf } from "./call";
import { type DeedWords, deedOf } from "./deeds";
import { CHANGING } from "./entities";
import type { Item } from "./segments";

export type ActivityWords = {
  thinking: string;
  planning: string;
  executing(step: number, of: number): string;
  preparing(tool: string): string;
  calling(tool: string): string;
  callingSeveral(n: number): string;
  thought: string;
  thoughtFor(duration: string): string;
  called(tool: string): string;
  calls(n: number): string;
  callFailed(tool: string): string;
  failed(n: number): string;
  more(n: number): string;
  deeds: DeedWords;
};

/** The state of a run: the agent's own word for its current activity, or the step of its plan that is under way. */
export type Doing = string | { step: number; of: number };

/** Returns the line of an active activity. */
export function nowDoing(words: ActivityWords, items: readonly Item[], state: Doing | undefined): string {
  const isThinking = items.at(-1)?.kind === "reasoning";
  const under = items.flatMap((item) => (item.kind === "call" && isUnderWay(item) ? [item.call] : []));
  const newest = under.at(-1);
  if (newest && !isThinking) {
    if (under.length > 1) return words.callingSeveral(under.length);
    const { tool } = nameOf(newest);
    return newest.state === "input-streaming" ? words.preparing(tool) : words.calling(tool);
  }
  return stateLine(words, state);
}

/** Returns the line of a run that shows no activity. */
export function stateLine(words: ActivityWords, state: Doing | undefined): string {
  if (typeof state === "object") return words.executing(state.step, state.of);
  return state === "executing_plan" ? words.planning : words.thinking;
}

/** Returns the line of an ended activity. `thinking` is its duration, if the page measured it or the server sent it. */
export function wasDone(words: ActivityWords, items: readonly Item[], thinking: string | undefined): string {
  const calls = items.filter((item) => item.kind === "call");
  const failed = calls.filter(hasFailed).length;
  const thoughts = calls.length < items.length ? [thinking ? words.thoughtFor(thinking) : words.thought] : [];
  const [first] = calls;
  if (!first) return thoughts.join();
  const change = calls.find((item) => CHANGING.test(nameOf(item.call).tool) && !hasFailed(item));
  const told = change ?? (calls.length === 1 ? first : undefined);
  const deed = told && deedOf(words.deeds, told.call);
  if (deed !== undefined && failed === 0) return [...thoughts, deed, ...(calls.length > 1 ? [words.more(calls.length - 1)] : [])].join(" · ");
  if (calls.length > 1) return [...thoughts, words.calls(calls.length), ...(failed > 0 ? [words.failed(failed)] : [])].join(" · ");
  const { tool } = nameOf(first.call);
  return [...thoughts, failed > 0 ? words.callFailed(tool) : words.called(tool)].join(" · ");
}

/** Whether the activity is one call, and the call has failed. */
export function isFailedCall(items: readonly Item[]): boolean {
  return items.length === 1 && hasFailed(items[0]!);
}

export function isUnderWay(item: Item): boolean {
  return item.kind === "reasoning" ? item.isStreaming : ["preparing", "running"].includes(standingOf(item.call, true));
}

function hasFailed(item: Item): boolean {
  return item.kind === "call" && standingOf(item.call, false) === "failed";
}
