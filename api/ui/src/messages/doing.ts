// The one line that says what an activity is, or was, about.
import { nameOf, standingOf } from "./call";
import type { Item } from "./segments";

export type ActivityWords = {
  thinking: string;
  planning: string;
  preparing(tool: string): string;
  calling(tool: string): string;
  callingSeveral(n: number): string;
  thought: string;
  thoughtFor(duration: string): string;
  called(tool: string): string;
  calls(n: number): string;
  callFailed(tool: string): string;
  failed(n: number): string;
};

/** While it goes on: `state` is what the agent says that it is doing. */
export function nowDoing(words: ActivityWords, items: readonly Item[], state: string | undefined): string {
  const isThinking = items.at(-1)?.kind === "reasoning";
  const under = items.flatMap((item) => (item.kind === "call" && isUnderWay(item) ? [item.call] : []));
  const newest = under.at(-1);
  if (newest && !isThinking) {
    if (under.length > 1) return words.callingSeveral(under.length);
    const { tool } = nameOf(newest);
    return newest.state === "input-streaming" ? words.preparing(tool) : words.calling(tool);
  }
  return state === "executing_plan" ? words.planning : words.thinking;
}

/** Afterwards. `thinking` is how long it took, where the page has seen it or the server tells it. */
export function wasDone(words: ActivityWords, items: readonly Item[], thinking: string | undefined): string {
  const calls = items.filter((item) => item.kind === "call");
  const failed = calls.filter(hasFailed).length;
  const thoughts = calls.length < items.length ? [thinking ? words.thoughtFor(thinking) : words.thought] : [];
  const [first] = calls;
  if (!first) return thoughts.join();
  if (calls.length > 1) return [...thoughts, words.calls(calls.length), ...(failed > 0 ? [words.failed(failed)] : [])].join(" · ");
  const { tool } = nameOf(first.call);
  return [...thoughts, failed > 0 ? words.callFailed(tool) : words.called(tool)].join(" · ");
}

/** Whether it is one call, and nothing has come of it. */
export function isFailedCall(items: readonly Item[]): boolean {
  return items.length === 1 && hasFailed(items[0]!);
}

export function isUnderWay(item: Item): boolean {
  return item.kind === "reasoning" ? item.isStreaming : ["preparing", "running"].includes(standingOf(item.call, true));
}

function hasFailed(item: Item): boolean {
  return item.kind === "call" && standingOf(item.call, false) === "failed";
}
