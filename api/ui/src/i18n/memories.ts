// These are the words of the page of memories, which the page loads with it, and only the reader's.
import { type Tag, language } from ".";
import type { memories } from "./en/memories";

const load: Record<Tag, () => Promise<typeof memories>> = {
  en: async () => (await import("./en/memories")).memories,
  "zh-Hans": async () => (await import("./zh/memories")).memories,
};

export const texts = await load[language]();
