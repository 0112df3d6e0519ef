// Which conversation is open, by the page's address. A new chat has an id of the page's own until the server has made its
// conversation; then the address becomes the conversation's, and what is open stays the same.
import { useCallback, useEffect, useState } from "react";

import { newId } from "../client/id";
import { parseAddress, pathOf } from "./address";

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

export function useOpen(): {
  open: Open;
  openConversation(id: string): void;
  openNew(): void;
  /** What is open has become this conversation. */
  settle(conversationId: string): void;
} {
  const [open, setOpen] = useState(() => openAt(location.pathname));

  useEffect(() => {
    const onPop = () => setOpen((before) => openAt(location.pathname, before));
    window.addEventListener("popstate", onPop);
    return () => window.removeEventListener("popstate", onPop);
  }, []);

  const openConversation = useCallback((id: string) => {
    if (location.pathname !== pathOf(id)) history.pushState(null, "", pathOf(id));
    setOpen((before) => openAt(pathOf(id), before));
  }, []);

  const openNew = useCallback(() => {
    if (location.pathname !== "/") history.pushState(null, "", "/");
    setOpen(openAt("/"));
  }, []);

  const settle = useCallback((conversationId: string) => {
    setOpen((before) => {
      if (before.at !== "chat" || before.conversationId === conversationId) return before;
      return { ...before, conversationId };
    });
    // Instead of `/`, so that going back does not lead to an empty chat that was never there.
    if (location.pathname !== pathOf(conversationId)) history.replaceState(null, "", pathOf(conversationId));
  }, []);

  return { open, openConversation, openNew, settle };
}

function openAt(path: string, before?: Open): Open {
  const address = parseAddress(path);
  if (address.at === "nowhere") return { at: "nowhere" };
  if (address.at === "new") return { at: "chat", key: newId(), isNew: true };
  if (before?.at === "chat" && before.conversationId === address.id) return before;
  return { at: "chat", key: address.id, isNew: false, conversationId: address.id };
}
