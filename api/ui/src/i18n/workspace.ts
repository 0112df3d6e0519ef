// These are the words of the workspace's pages, which the page loads with these pages, and only the reader's.
import { type Tag, language } from ".";
import type { workspace } from "./en/workspace";

const load: Record<Tag, () => Promise<typeof workspace>> = {
  en: async () => (await import("./en/workspace")).workspace,
  "zh-Hans": async () => (await import("./zh/workspace")).workspace,
};

export const texts = await load[language]();
