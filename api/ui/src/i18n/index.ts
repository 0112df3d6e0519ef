// The page's words. A language is a file that has every key of `en`.
import { en } from "./en";
import { zh } from "./zh";

export type Words = typeof en;

const languages: Record<string, Words> = { en, zh };

/** The words of the first of the browser's languages that there is. */
export function wordsFor(wanted: readonly string[]): { language: string; words: Words } {
  const language = wanted.map((tag) => tag.split("-")[0]!.toLowerCase()).find((tag) => tag in languages) ?? "en";
  return { language, words: languages[language]! };
}

export const { language, words } = wordsFor(navigator.languages);
