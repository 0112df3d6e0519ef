// Which conversation is open, by the page's address. A new chat has an id of the page's own until the server has made its
// conversation; then the address becomes the conversation's, and what is open stays the same.
import { useCallback, useEffect, useRef, useState } from "react";

import { unsentNewChat } from "../chat/live";
import { newId } from "../client/id";
import { linkOf, parseAddress, pathOf, placeIn } from "./address";

export type Open =
  | {
      at: "chat";
      /** Stays the same as long as the same chat is open. */
      key: string;
      isNew: boolean;
      /** The server's name of it, once known. */
      conversationId?: string;
    }
  | { at: "nowhere" };

export type Place = { messageId: string };

export function useOpen(): {
  open: Open;
  /** The message that the address leads to; each object leads there once. */
  place?: Place;
  openConversation(id: string, messageId?: string): void;
  openNew(): void;
  /** The chat of this key has become this conversation. */
  settle(key: string, conversationId: string): void;
} {
  const [open, setOpen] = useState(() => openAt(location.pathname));
  const [place, setPlace] = useState(() => placeAt(placeIn(location.hash)));
  /** What was opened last, also before it was drawn. */
  const newest = useRef(open);
  const show = useCallback((next: Open) => setOpen((newest.current = next)), []);

  useEffect(() => {
    const onPop = () => {
      setPlace(placeAt(placeIn(location.hash)));
      show(openAt(location.pathname, newest.current));
    };
    window.addEventListener("popstate", onPop);
    return () => window.removeEventListener("popstate", onPop);
  }, [show]);

  const openConversation = useCallback(
    (id: string, messageId?: string) => {
      const link = linkOf(id, messageId);
      if (location.pathname !== pathOf(id) || messageId !== undefined) history.pushState(null, "", link);
      setPlace(placeAt(messageId));
      show(openAt(pathOf(id), newest.current));
    },
    [show],
  );

  const openNew = useCallback(() => {
    if (location.pathname !== "/") history.pushState(null, "", "/");
    show(openAt("/"));
  }, [show]);

  const settle = useCallback(
    (key: string, conversationId: string) => {
      const { current } = newest;
      // A chat that was left may hear of its name only now; the address is another one's.
      if (current.at !== "chat" || current.key !== key) return;
      if (current.conversationId !== conversationId) show({ ...current, conversationId });
      // Instead of `/`, so that going back does not lead to an empty chat that was never there.
      if (location.pathname !== pathOf(conversationId)) history.replaceState(null, "", pathOf(conversationId));
    },
    [show],
  );

  return { open, place, openConversation, openNew, settle };
}

function placeAt(messageId: string | undefined): Place | undefined {
  return messageId === undefined ? undefined : { messageId };
}

function openAt(path: string, before?: Open): Open {
  const address = parseAddress(path);
  if (address.at === "nowhere") return { at: "nowhere" };
  if (address.at === "new") return { at: "chat", key: unsentNewChat() ?? newId(), isNew: true };
  if (before?.at === "chat" && before.conversationId === address.id) return before;
  return { at: "chat", key: address.id, isNew: false, conversationId: address.id };
}
