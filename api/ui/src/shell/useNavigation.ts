// The reader goes from one chat to another: by the list, a link, a shortcut, or a fork.
import { useCallback, useEffect } from "react";

import { focusOnField } from "./focus";
import { type Open, type Place, useOpen } from "./useOpen";

export interface Navigation {
  open: Open;
  place?: Place;
  /** The server's id of the open conversation. */
  current: string | undefined;
  /** Opens a conversation; a reader who steps through the list keeps the focus there. */
  goTo(id: string, messageId?: string, words?: string): void;
  /** Opens a conversation for a reader who will write next. */
  goToWrite(id: string, messageId?: string, words?: string): void;
  leavePlace(): void;
  goToNew(): void;
  /** Leaves the open conversation: it belongs to another reader, or no longer exists. */
  leave(): void;
  settle(key: string, conversationId: string): void;
}

export function useNavigation(closeDrawer: () => void): Navigation {
  const { open, place, openConversation, leavePlace, openNew, settle } = useOpen();
  const goTo = useCallback(
    (id: string, messageId?: string, words?: string) => {
      closeDrawer();
      openConversation(id, messageId, words);
    },
    [closeDrawer, openConversation],
  );
  const goToWrite = (id: string, messageId?: string, words?: string) => {
    goTo(id, messageId, words);
    focusOnField();
  };
  const goToNew = () => {
    closeDrawer();
    openNew();
    focusOnField();
  };
  useEffect(() => {
    if (open.at === "chat") focusOnField();
  }, []);
  // A link leads to another page while the drawer is open.
  useEffect(() => closeDrawer(), [open.at, closeDrawer]);
  return { open, place, current: open.at === "chat" ? open.conversationId : undefined, goTo, goToWrite, leavePlace, goToNew, leave: openNew, settle };
}
