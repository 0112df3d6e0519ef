// A project in one line.
import type { Entity } from "../../client/workspace";
import { locale } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { dayText } from "../dates";

/** A line needs no more of a text. */
const MOST = 400;

/** Returns the beginning of a text in Markdown without its markup. */
export function plainOf(markdown: string): string {
  return markdown.slice(0, MOST).replace(/[*_`#>]+/g, "").replace(/\s+/g, " ").trim();
}

/** Returns both dates; nothing if there is none. */
export function datesOf({ start_at, end_at }: Entity): string | undefined {
  if (!start_at && !end_at) return undefined;
  const text = (time: string | null | undefined) => (time ? dayText(time, locale) : "…");
  return texts.project.dates(text(start_at), text(end_at));
}
