// These are the words of the previews of files, which the page loads with the first one, and only the reader's.
import { type Tag, language } from ".";
import type { previews } from "./en/previews";

const load: Record<Tag, () => Promise<typeof previews>> = {
  en: async () => (await import("./en/previews")).previews,
  "zh-Hans": async () => (await import("./zh/previews")).previews,
};

export const texts = await load[language]();
