// A text that its writer has not sent, beside the message field: an answer to a question, or the input of a call. The
// browser keeps it as it keeps drafts of messages.
import { useState } from "react";

import { tabDrafts } from "./drafts";

/** Returns the kept text of this name, and a function that keeps another one. */
export function useDraft(name: string): [text: string, write: (text: string) => void] {
  const [text, setText] = useState(() => tabDrafts.read(name));
  const write = (text: string) => {
    setText(text);
    tabDrafts.keep(name, text);
  };
  return [text, write];
}

/** Forgets the texts as soon as the server has them. */
export async function sent<T>(sending: Promise<T>, ...names: string[]): Promise<T> {
  const outcome = await sending;
  for (const name of names) tabDrafts.keep(name, "");
  return outcome;
}
