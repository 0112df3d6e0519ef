// The page's words. A language is a file that has every key of `en`; only the reader's is loaded.
import { en } from "./en";

export type Words = typeof en;

/** By the first part of a language's tag; the tag is what the page says of itself, for fonts and voices. */
const languages: Record<string, { tag: string; load(): Promise<Words> }> = {
  en: { tag: "en", load: async () => en },
  zh: { tag: "zh-Hans", load: async () => (await import("./zh")).zh },
};

/** The words of the first of the browser's languages that there is. */
export async function wordsFor(wanted: readonly string[]): Promise<{ language: string; words: Words }> {
  const known = wanted.map((tag) => tag.split("-")[0]!.toLowerCase()).find((tag) => Object.hasOwn(languages, tag));
  const { tag, load } = languages[known ?? "en"]!;
  return { language: tag, words: await load() };
}

export const { language, words } = await wordsFor(globalThis.navigator?.languages ?? []);

/** Sentences one after the other; what is not said is left out. In Chinese nothing stands between them. */
export function inSentences(sentences: readonly (string | false | undefined)[]): string {
  return sentences.filter(Boolean).join(language.startsWith("zh") ? "" : " ");
}
