// This file decodes HTML's named characters (`&nbsp;`), as far as HTML 4 has them. The 1,900 later names weigh more
// than all of the page's words. Trusted Types forbid the browser's own decoder.
import { characterEntitiesHtml4 } from "character-entities-html4";

export function decodeNamedCharacterReference(name: string): string | false {
  if (name === "apos") return "'";
  return Object.hasOwn(characterEntitiesHtml4, name) ? (characterEntitiesHtml4[name] ?? false) : false;
}
