// These are the words of the knowledge's pages, which the page loads with these pages, and only the reader's.
import { type Tag, language } from ".";
import type { knowledge } from "./en/knowledge";

const load: Record<Tag, () => Promise<typeof knowledge>> = {
  en: async () => (await import("./en/knowledge")).knowledge,
  "zh-Hans": async () => (await import("./zh/knowledge")).knowledge,
};

export const texts = await load[language]();
