// The page's address decides which conversation, or which part of the workspace or of the knowledge, is open. The page
// gives a new chat an id until the server has made its conversation. Then the address becomes the conversation's, and
// the chat stays open.
import { newId } from "holdfast-client/id";
import { useCallback, useEffect, useRef, useState } from "react";

import { unsentNewChat } from "../chat/live";
import type { KnowledgeView } from "../knowledge/address";
import type { WorkspaceView } from "../workspace/address";
import { linkOf, parseAddress, pathOf, placeIn } from "./address";

export type Open =
  | {
      at: "chat";
      /** The key stays constant as long as the chat is open. */
      key: string;
      isNew: boolean;
      /** The server's id of the conversation, once known. */
      conversationId?: string;
    }
  | { at: "workspace"; view: WorkspaceView }
  | { at: "memories" }
  | { at: "knowledge"; view: KnowledgeView }
  | { at: "nowhere" };

/** `words` are those of the search that has found the message. */
export type Place = { messageId: string; words?: string };

export function useOpen(): {
  open: Open;
  /** The message that the address leads to; each object leads there once. */
  place?: Place;
  openConversation(id: string, messageId?: string, words?: string): void;
  /** The reader leaves the message that the address leads to: the next load opens the conversation at its end. */
  leavePlace(): void;
  openNew(): void;
  /** The server has made this conversation of the chat with this key. */
  settle(key: string, conversationId: string): void;
} {
  const [open, setOpen] = useState(() => openAt(location.pathname));
  const [place, setPlace] = useState(() => placeAt(placeIn(location.hash), wordsIn(history.state)));
  /** The newest opened chat, also before its render. */
  const newest = useRef(open);
  const show = useCallback((next: Open) => setOpen((newest.current = next)), []);

  useEffect(() => {
    const onPop = () => {
      setPlace(placeAt(placeIn(location.hash), wordsIn(history.state)));
      show(openAt(location.pathname, newest.current));
    };
    window.addEventListener("popstate", onPop);
    return () => window.removeEventListener("popstate", onPop);
  }, [show]);

  const openConversation = useCallback(
    (id: string, messageId?: string, words?: string) => {
      const link = linkOf(id, messageId);
      if (location.pathname !== pathOf(id) || messageId !== undefined) history.pushState(words ? { words } : null, "", link);
      setPlace(placeAt(messageId, words));
      show(openAt(pathOf(id), newest.current));
    },
    [show],
  );

  const leavePlace = useCallback(() => {
    setPlace(undefined);
    if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  }, []);

  const openNew = useCallback(() => {
    if (location.pathname !== "/") history.pushState(null, "", "/");
    show(openAt("/"));
  }, [show]);

  const settle = useCallback(
    (key: string, conversationId: string) => {
      const { current } = newest;
      // A chat may receive its id only after the reader has left it; the address belongs to another chat.
      if (current.at !== "chat" || current.key !== key) return;
      if (current.conversationId !== conversationId) show({ ...current, conversationId });
      // It replaces `/`, so that going back does not lead to an empty chat that never existed.
      if (location.pathname !== pathOf(conversationId)) history.replaceState(null, "", pathOf(conversationId));
    },
    [show],
  );

  return { open, place, openConversation, leavePlace, openNew, settle };
}

function placeAt(messageId: string | undefined, words?: string): Place | undefined {
  return messageId === undefined ? undefined : { messageId, words };
}

/** The browser keeps the words of the search with the address, also over a reload. */
function wordsIn(state: unknown): string | undefined {
  const words = (state as { words?: unknown } | null)?.words;
  return typeof words === "string" ? words : undefined;
}

function openAt(path: string, before?: Open): Open {
  const address = parseAddress(path, location.search);
  if (address.at !== "new" && address.at !== "conversation") return address;
  if (address.at === "new") return { at: "chat", key: unsentNewChat() ?? newId(), isNew: true };
  if (before?.at === "chat" && before.conversationId === address.id) return before;
  return { at: "chat", key: address.id, isNew: false, conversationId: address.id };
}
