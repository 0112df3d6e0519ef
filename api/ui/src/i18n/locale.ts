// The locale has the formats of the reader's country, in the language of the page.
import { language } from ".";

/** For dates and numbers: `en-GB` writes 5 December, and `en-US` December 5. */
export const locale = navigator.languages.find((tag) => tag === language || tag.startsWith(`${language}-`)) ?? language;
