// This file computes the text of the message field. A sent text returns when the chat says that it failed to arrive.
import type { Posting, Unsent } from "../../chat/chat";
import { joined } from "./drafts";

export interface Composing {
  text: string;
  /** The chat's latest unsent message, if the reader wrote it in this field. */
  unsent?: OfField;
}

/** The reader writes an edit in the edited message, and a request for another answer has no text. */
type OfField = Unsent & { text: string; instead?: undefined };

/** The messages of a chat that may be in flight. */
export type Flights = { unsent?: Unsent; posting?: readonly Posting[] };

/** Returns the first content of the field: the draft without the messages in flight. */
export function beginning(draft: string, flights: Flights): Composing {
  const underway = textInFlight(flights);
  if (underway === "" || !draft.startsWith(underway)) return { text: draft };
  return { text: draft.slice(underway.length).trimStart() };
}

export type Happening =
  | { is: "written"; text: string }
  | { is: "sent" }
  /** The server has refused a text that the field no longer has. */
  | { is: "returned"; text: string }
  | { is: "reported"; unsent?: Unsent };

export function next(now: Composing, happening: Happening): Composing {
  switch (happening.is) {
    case "written":
      return { ...now, text: happening.text };
    case "sent":
      return { ...now, text: "" };
    case "returned":
      return { ...now, text: joined(happening.text, now.text) };
    case "reported": {
      const unsent = ofField(happening.unsent);
      // The chat is sending another request, which does not concern this field.
      if (happening.unsent && !unsent) return { text: now.text };
      return { text: textAfter(now, unsent), unsent };
    }
  }
}

/** Returns the text to keep for a reload: it includes the messages that may not have arrived. */
export function draftIn({ text }: Composing, flights: Flights): string {
  return joined(textInFlight(flights), text);
}

/** Returns the draft after the messages in flight have settled: the server does not have these. */
export function draftAfter(text: string, left: readonly Unsent[]): string {
  return [...left.map((unsent) => ofField(unsent)?.text ?? ""), text].reduce(joined);
}

function textInFlight({ unsent, posting = [] }: Flights): string {
  const underway = ofField(unsent);
  return [underway?.isUnderway ? underway.text : "", ...posting.map(({ text }) => text)].reduce(joined);
}

function textAfter({ text, unsent: before }: Composing, after: OfField | undefined): string {
  const wasRefused = before !== undefined && !before.isUnderway;
  const isRefused = after !== undefined && !after.isUnderway;
  if (isRefused) return wasRefused ? text : joined(after.text, text);
  // Another component has sent it again, or it has arrived; a text changed since then is another message.
  return wasRefused && text.trim() === before.text.trim() ? "" : text;
}

function ofField(unsent: Unsent | undefined): OfField | undefined {
  return unsent?.text !== undefined && unsent.instead === undefined ? (unsent as OfField) : undefined;
}
