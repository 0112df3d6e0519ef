// A problem in plain words.
import { type Problem, RUN_FAILED } from "../client/problem";

export type TroubleWords = { unknown: string; code: Record<string, string> };

/** The page's own words, where it has some. */
export function reasonFor(words: TroubleWords, problem: Problem): string {
  if (Object.hasOwn(words.code, problem.code)) return words.code[problem.code]!;
  // Without a status it is a run that has failed, for a reason that the page does not know.
  return (problem.status === 0 && words.code[RUN_FAILED]) || words.unknown;
}

/** Whether the same once more may come to something: what is too long stays so. */
export function canHelp({ code }: Problem): boolean {
  return code !== "content_too_long" && code !== "body_too_large";
}

/** What the server says of it, where the page's words do not say everything: of models, of limits, and of what the page does not know. */
export function detailOf(words: TroubleWords, problem: Problem): string | undefined {
  const isToldWhole = Object.hasOwn(words.code, problem.code) && !/^(?:model_|limit_|run_)/.test(problem.code);
  return isToldWhole ? undefined : problem.message || undefined;
}
