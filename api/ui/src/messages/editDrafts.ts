// The text and the files of an open edit are a draft, as those of a new message are: the browser keeps them until the
// server has the edit.
import { useEffect, useLayoutEffect, useRef } from "react";

import type { Chat, Unsent } from "../chat/chat";
import { keepFiles } from "../files/drafts";
import { tabDrafts } from "../shell/composer/drafts";

export const draftOfEdit = (messageId: string) => `edit ${messageId}`;

/** Returns the kept text of an edit, if it is another one than the message's. */
export function keptEdit(messageId: string, text: string): string | undefined {
  const kept = tabDrafts.read(draftOfEdit(messageId));
  return kept === "" || kept === text ? undefined : kept;
}

export function keepEdit(messageId: string, text: string): void {
  tabDrafts.keep(draftOfEdit(messageId), text);
}

export function forgetEdit(messageId: string): void {
  keepEdit(messageId, "");
  keepFiles(draftOfEdit(messageId), []);
}

/** Forgets an edit as soon as the server has it, also after the reader has left the chat. */
export function useSentEdits(chat: Chat): void {
  const before = useRef<Unsent>(undefined);
  useEffect(() => {
    const edited = before.current?.instead;
    if (edited !== undefined && !chat.unsent) forgetEdit(edited);
    before.current = chat.unsent;
  }, [chat.unsent]);

  const newest = useRef(chat);
  useLayoutEffect(() => {
    newest.current = chat;
  });
  useEffect(
    () => () => {
      const { unsent, settled } = newest.current;
      const edited = unsent?.instead;
      if (edited === undefined || !unsent?.isUnderway) return;
      void settled(true).then((left) => left.some(({ instead }) => instead === edited) || forgetEdit(edited));
    },
    [],
  );
}
