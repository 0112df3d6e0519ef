// This hook returns the actions of a message. The functions stay identical as long as the list exists, whatever the
// chat does. React therefore does not render a message again because of them.
import { useLayoutEffect, useRef, useState } from "react";

import type { Chat } from "../chat/chat";
import type { ChatMessage } from "../chat/message";

export type Actions = Pick<Chat, "regenerate" | "edit" | "restore" | "decide" | "answer"> & {
  /** Opens a new conversation that continues from this answer. */
  fork(message: ChatMessage): Promise<void>;
  /** Sends the reader's next message. */
  say(text: string): void;
};

export function useActions(chat: Chat, onFork: (id: string) => void): Actions {
  const newest = useRef({ chat, onFork });
  useLayoutEffect(() => {
    newest.current = { chat, onFork };
  });
  const [actions] = useState<Actions>(() => ({
    regenerate: (id) => newest.current.chat.regenerate(id),
    edit: (id, text, files) => newest.current.chat.edit(id, text, files),
    restore: (id) => newest.current.chat.restore(id),
    decide: (message, id, decision) => newest.current.chat.decide(message, id, decision),
    answer: (message, id, answer) => newest.current.chat.answer(message, id, answer),
    say: (text) => void newest.current.chat.send(text),
    fork: async (message) => newest.current.onFork(await newest.current.chat.fork(message)),
  }));
  return actions;
}
