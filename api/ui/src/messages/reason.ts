// This file describes a problem in plain words.
import type { Problem } from "holdfast-client/problem";

import { RUN_FAILED, isTooLong, limitOf } from "../client/refusals";
import { inSentences } from "../i18n";

export type TroubleWords = { unknown: string; tooLong(limit: string): string; code: Record<string, string> };

/** Returns the page's own words, where it has some. */
export function reasonFor(words: TroubleWords, problem: Problem): string {
  const limit = limitOf(problem);
  if (isTooLong(problem) && limit !== undefined) return words.tooLong(sizeOf(limit));
  if (Object.hasOwn(words.code, problem.code)) return words.code[problem.code]!;
  // A problem without a status is a failed run, for a reason that the page does not know.
  return (problem.status === 0 && words.code[RUN_FAILED]) || words.unknown;
}

/** Whether a retry may succeed: a text that is too long stays too long. */
export function canHelp(problem: Problem): boolean {
  return !isTooLong(problem);
}

/** Returns 32 KiB, for example; a limit that is no whole number of KiB has one decimal. */
function sizeOf(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : `${Math.round((bytes / 1024) * 10) / 10} KiB`;
}

/** Warnings whose message names files, tools or servers. The page's own words, where a language needs any, come before it. */
const NAMING = /^(?:files?_|tools_|mcp_|subagent_|vectors_)/;

/** Returns a warning in the page's words, with the server's message where these are incomplete. */
export function warningIn(words: Record<string, string>, warning: { code: string; message: string }): string {
  const own = Object.hasOwn(words, warning.code) && words[warning.code];
  return inSentences([own, (!own || NAMING.test(warning.code)) && warning.message]);
}

/** Returns the server's detail where the page's words are incomplete: for models, for limits, and for unknown codes. */
export function detailOf(words: TroubleWords, problem: Problem): string | undefined {
  const isToldWhole = Object.hasOwn(words.code, problem.code) && !/^(?:model_|limit_|run_|attachment_|file_refused$)/.test(problem.code);
  return isToldWhole ? undefined : problem.message || undefined;
}
