// This hook holds the context of the open chat's next message. The server keeps the context of a conversation, and a run
// may shift it, so the page reads it again after each answer.
import { useEffect, useRef, useState } from "react";

import type { Chat } from "../../chat/chat";
import type { AgentContext } from "../../client/context";
import { readConversation } from "../../client/server";

const EVERYWHERE: AgentContext = { context_type: "global" };

export interface ChatContext {
  /** The context of the next message; undefined until the page has read it, and for other agents. */
  shown: AgentContext | undefined;
  choose(context: AgentContext): void;
}

/** `first` is the context of a new chat, before its reader chooses another one. */
export function useChatContext({ conversationId, progress, speakFrom }: Chat, isPlanner: boolean, first: AgentContext | undefined): ChatContext {
  const [chosen, choose] = useState(first);
  const [kept, setKept] = useState<AgentContext>();
  const isBusy = progress === "submitted" || progress === "streaming";
  /** The choice that the newest message has named: a later one waits for the next message. */
  const named = useRef(chosen);
  useEffect(() => {
    if (isBusy) named.current = chosen;
  }, [isBusy]);
  useEffect(() => {
    if (!isPlanner || conversationId === undefined || isBusy) return;
    let isOver = false;
    readConversation(conversationId).then(
      ({ context }) => {
        if (isOver) return;
        setKept(context ?? EVERYWHERE);
        choose((now) => (now === named.current ? undefined : now));
      },
      // The read of the messages reports a failure.
      () => {},
    );
    return () => {
      isOver = true;
    };
  }, [isPlanner, conversationId, isBusy]);
  const isNew = conversationId === undefined;
  const next = chosen ?? (isNew ? EVERYWHERE : undefined);
  useEffect(() => speakFrom(isPlanner ? next : undefined), [speakFrom, isPlanner, next]);
  return { shown: isPlanner ? (next ?? kept) : undefined, choose };
}
