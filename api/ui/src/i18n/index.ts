// These are the page's words. A language is a file that has every key of `en`; the page loads only the reader's.
import type { en } from "./en";

export type Words = typeof en;

export type Tag = "en" | "zh-Hans";

/** The key is the first part of a language's tag; the page declares the tag, for fonts and voices. */
const languages: Record<string, { tag: Tag; load(): Promise<Words> }> = {
  en: { tag: "en", load: async () => (await import("./en")).en },
  zh: { tag: "zh-Hans", load: async () => (await import("./zh")).zh },
};

/** Returns the words of the first of the browser's languages that the page has. */
export async function wordsFor(wanted: readonly string[]): Promise<{ language: Tag; words: Words }> {
  const known = wanted.map((tag) => tag.split("-")[0]!.toLowerCase()).find((tag) => Object.hasOwn(languages, tag));
  const { tag, load } = languages[known ?? "en"]!;
  return { language: tag, words: await load() };
}

const wanted = globalThis.navigator?.languages ?? [];

export const { language, words } = await wordsFor(wanted);

/** Dates and numbers have the form of the reader's country, in the language of the page. */
export const locale = localeOf(wanted, language);

export function localeOf(wanted: readonly string[], language: string): string {
  return wanted.find((tag) => tag.split("-")[0]!.toLowerCase() === language.split("-")[0]) ?? language;
}

/** Joins the sentences without the missing ones. Chinese needs no space between them. */
export function inSentences(sentences: readonly (string | false | undefined)[]): string {
  return sentences.filter(Boolean).join(language.startsWith("zh") ? "" : " ");
}
