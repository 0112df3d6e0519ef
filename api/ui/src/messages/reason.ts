// A problem in plain words.
import type { Problem } from "../client/problem";

export type TroubleWords = { unknown: string; code: Record<string, string> };

/** The page's own words where it has some; else the server's, which are for people too. */
export function reasonFor(words: TroubleWords, problem: Problem): string {
  if (Object.hasOwn(words.code, problem.code)) return words.code[problem.code]!;
  if (problem.status === 0 && problem.message === "") return words.code.network ?? words.unknown;
  return problem.message || words.unknown;
}

/** What the model's provider or a limit says beyond that. Of the rest, the page's words say everything. */
export function detailOf(problem: Problem): string | undefined {
  return /^(model_|limit_)/.test(problem.code) && problem.message ? problem.message : undefined;
}
