// A problem in plain words.
import { type Problem, RUN_FAILED, isTooLong, limitOf } from "../client/problem";

export type TroubleWords = { unknown: string; tooLong(limit: string): string; code: Record<string, string> };

/** The page's own words, where it has some. */
export function reasonFor(words: TroubleWords, problem: Problem): string {
  const limit = limitOf(problem);
  if (isTooLong(problem) && limit !== undefined) return words.tooLong(sizeOf(limit));
  if (Object.hasOwn(words.code, problem.code)) return words.code[problem.code]!;
  // Without a status it is a run that has failed, for a reason that the page does not know.
  return (problem.status === 0 && words.code[RUN_FAILED]) || words.unknown;
}

/** Whether the same once more may come to something: what is too long stays so. */
export function canHelp(problem: Problem): boolean {
  return !isTooLong(problem);
}

/** 32 KiB; of a limit that is no whole number of them, one decimal. */
function sizeOf(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : `${Math.round((bytes / 1024) * 10) / 10} KiB`;
}

/** What the server says of it, where the page's words do not say everything: of models, of limits, and of what the page does not know. */
export function detailOf(words: TroubleWords, problem: Problem): string | undefined {
  const isToldWhole = Object.hasOwn(words.code, problem.code) && !/^(?:model_|limit_|run_)/.test(problem.code);
  return isToldWhole ? undefined : problem.message || undefined;
}
