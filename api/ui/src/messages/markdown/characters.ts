// The characters that HTML has names for (`&nbsp;`), as far as HTML 4 knows them: the 1,900 names that came later weigh more
// than all of the page's words, and the browser's own way to read them is forbidden by Trusted Types.
import { characterEntitiesHtml4 } from "character-entities-html4";

export function decodeNamedCharacterReference(name: string): string | false {
  if (name === "apos") return "'";
  return Object.hasOwn(characterEntitiesHtml4, name) ? (characterEntitiesHtml4[name] ?? false) : false;
}
