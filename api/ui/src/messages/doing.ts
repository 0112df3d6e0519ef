// The one line that says what an activity is, or was, about.
import { nameOf, standingOf } from "./call";
import type { Item } from "./segments";

export type ActivityWords = {
  thinking: string;
  planning: string;
  preparing(tool: string): string;
  calling(tool: string): string;
  thought: string;
  thoughtFor(duration: string): string;
  called(tool: string): string;
  calls(n: number): string;
  failed(n: number): string;
};

/** While it goes on: `state` is what the agent says that it is doing. */
export function nowDoing(words: ActivityWords, items: readonly Item[], state: string | undefined): string {
  const call = items.findLast((item) => item.kind === "call" && ["preparing", "running"].includes(standingOf(item.call, true)));
  const isThinking = items.at(-1)?.kind === "reasoning";
  if (call?.kind === "call" && !isThinking) {
    const { tool } = nameOf(call.call);
    return call.call.state === "input-streaming" ? words.preparing(tool) : words.calling(tool);
  }
  return state === "executing_plan" ? words.planning : words.thinking;
}

/** Afterwards. `thinking` is how long it took, where the page has seen it. */
export function wasDone(words: ActivityWords, items: readonly Item[], thinking: string | undefined): string {
  const calls = items.filter((item) => item.kind === "call");
  const failed = calls.filter(({ call }) => standingOf(call, false) === "failed").length;
  const thoughts = calls.length < items.length ? [thinking ? words.thoughtFor(thinking) : words.thought] : [];
  const called = calls.length === 1 ? [words.called(nameOf(calls[0]!.call).tool)] : calls.length > 1 ? [words.calls(calls.length)] : [];
  return [...thoughts, ...called, ...(failed > 0 ? [words.failed(failed)] : [])].join(" · ");
}
