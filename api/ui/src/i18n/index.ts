// The page's words. A language is a file that has every key of `en`.
import { en } from "./en";
import { zh } from "./zh";

export type Words = typeof en;

/** By the first part of a language's tag; the tag is what the page says of itself, for fonts and voices. */
const languages: Record<string, { tag: string; words: Words }> = {
  en: { tag: "en", words: en },
  zh: { tag: "zh-Hans", words: zh },
};

/** The words of the first of the browser's languages that there is. */
export function wordsFor(wanted: readonly string[]): { language: string; words: Words } {
  const known = wanted.map((tag) => tag.split("-")[0]!.toLowerCase()).find((tag) => Object.hasOwn(languages, tag));
  const { tag, words } = languages[known ?? "en"]!;
  return { language: tag, words };
}

export const { language, words } = wordsFor(globalThis.navigator?.languages ?? []);
