// What is in the message field. What has left it comes back when the chat says that it could not be sent.
import type { Unsent } from "../chat/chat";
import { joined } from "./drafts";

export interface Composing {
  text: string;
  /** What the chat has told last, if it was written here. */
  unsent?: OfField;
}

/** What is said instead of a message is written there, and the wish for another answer nowhere. */
type OfField = Unsent & { text: string; instead?: undefined };

/** The first content of the field: the draft without the message on its way, which the messages show. */
export function beginning(draft: string, unsent: Unsent | undefined): Composing {
  const underway = ofField(unsent);
  if (!underway?.isUnderway || !draft.startsWith(underway.text)) return { text: draft };
  return { text: draft.slice(underway.text.length).trimStart() };
}

export type Happening =
  | { is: "written"; text: string }
  | { is: "sent" }
  | { is: "told"; unsent?: Unsent };

export function next(now: Composing, happening: Happening): Composing {
  switch (happening.is) {
    case "written":
      return { ...now, text: happening.text };
    case "sent":
      return { ...now, text: "" };
    case "told": {
      const unsent = ofField(happening.unsent);
      // Something else is being said, and says nothing of what is here.
      if (happening.unsent && !unsent) return { text: now.text };
      return { text: textAfter(now, unsent), unsent };
    }
  }
}

/** What is to be there after a reload: also what may not have arrived. */
export function draftIn({ text }: Composing, unsent: Unsent | undefined): string {
  const underway = ofField(unsent);
  return joined(underway?.isUnderway ? underway.text : "", text);
}

function textAfter({ text, unsent: before }: Composing, after: OfField | undefined): string {
  const wasRefused = before !== undefined && !before.isUnderway;
  const isRefused = after !== undefined && !after.isUnderway;
  if (isRefused) return wasRefused ? text : joined(after.text, text);
  // It was sent again from elsewhere, or has arrived after all; what was changed since is another message.
  return wasRefused && text.trim() === before.text.trim() ? "" : text;
}

function ofField(unsent: Unsent | undefined): OfField | undefined {
  return unsent?.text !== undefined && unsent.instead === undefined ? (unsent as OfField) : undefined;
}
