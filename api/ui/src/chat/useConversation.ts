// This hook gives a view its conversation: the AI SDK's `useChat` on Holdfast's transport, with everything else that a
// chat page needs.
import { useChat } from "@ai-sdk/react";
import { Problem } from "holdfast-client/problem";
import { wake } from "holdfast-client/wake";
import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";

import { forkConversation, readCheckpoints } from "../client/server";
import type { Chat } from "./chat";
import { THROTTLE_MS } from "./effects";
import { LiveChat } from "./live";
import type { ChatMessage } from "./message";
import { withVerdicts, type Verdicts } from "./questions";
import { conversationOf, progressOf, shownOf, takesMore, unsentOf } from "./state";

export interface Named {
  /** The conversation's id, or a new UUID for a future conversation. */
  id: string;
  /** The agent of a new conversation. */
  agentId?: string;
  /** Whether the conversation has no message yet, so the page has nothing to read. */
  isNew: boolean;
}

/** Returns the chat of an id. The hook makes another chat for another id, and for no other change. */
export function useConversation({ id, agentId, isNew }: Named): Chat {
  // A new chat stays this chat after its first message.
  const live = useMemo(() => LiveChat.of(id, isNew), [id]);
  useEffect(() => live.open(), [live]);
  useEffect(() => {
    // Until the chat has begun, the reader may choose another agent.
    if (isNew) void live.dispatch({ type: "agent-chosen", agentId });
  }, [live, isNew, agentId]);

  const state = useSyncExternalStore(live.subscribe, () => live.now);
  const folded = useChat({ chat: live.sdk, throttle: THROTTLE_MS });
  const messages = useJudged(shownOf(state, folded), state.verdicts);
  const does = useMemo(() => actionsOf(live), [live]);
  const progress = progressOf(state, folded);
  // A render must read only the state that it renders, or React can lose effects on it.
  const conversationId = conversationOf(state, folded);
  const { isReconnecting, nextTryAt, doing, retrying, failure, unsent, phase, waiting, posting } = state;
  const earlier = state.earlier === undefined ? undefined : (state.earlierProgress ?? "more");
  const isOpen = takesMore(state, folded);

  return useMemo(
    () => ({ id, conversationId, messages, progress, isReconnecting, nextTryAt, doing, retrying, ...failure, unsent: unsentOf({ unsent, phase }), waiting, posting, earlier, takesMore: isOpen, ...does }),
    [id, conversationId, messages, progress, isReconnecting, nextTryAt, doing, retrying, failure, unsent, phase, waiting, posting, earlier, isOpen, does],
  );
}

/** Returns the messages with the known verdicts of their approvals, and keeps unchanged message objects. */
function useJudged(messages: ChatMessage[], verdicts: Verdicts): ChatMessage[] {
  const known = useRef({ verdicts, judged: new WeakMap<ChatMessage, ChatMessage>() });
  return useMemo(() => {
    if (known.current.verdicts !== verdicts) known.current = { verdicts, judged: new WeakMap() };
    const { judged } = known.current;
    return messages.map((message) => {
      const before = judged.get(message);
      if (before) return before;
      const after = withVerdicts(message, verdicts);
      judged.set(message, after);
      return after;
    });
  }, [messages, verdicts]);
}

type Actions = Pick<Chat, "speakFrom" | "beginWith" | "readEarlier" | "send" | "post" | "takeBack" | "stop" | "tryNow" | "dismiss" | "retry" | "regenerate" | "edit" | "restore" | "settled" | "decide" | "answer" | "fork">;

function actionsOf(live: LiveChat): Actions {
  return {
    speakFrom: (context) => void (live.context = context),
    beginWith: (make) => void (live.begin = make),
    send: (text, files) => live.send(text, files),
    post: (text, mode, files) => live.post(text, mode, files),
    takeBack: (message) => live.takeBack(message),
    stop: () => void live.dispatch({ type: "stopped" }),
    readEarlier: (limit) => void live.dispatch({ type: "earlier-wanted", limit }),
    tryNow: wake,
    dismiss: () => void live.dispatch({ type: "dismissed" }),
    retry: () => live.retry(),
    regenerate: (messageId) => live.regenerate(messageId),
    edit: (messageId, text, files) => live.edit(messageId, text, files),
    restore: (versionId) => live.restore(versionId),
    settled: (wasSending) => live.settled(wasSending),
    decide: (message, approvalId, decision) => live.decide(message, approvalId, decision),
    answer: (message, callId, answer) => live.answer(message, callId, answer),
    fork: (message) => fork(message, live.conversationId),
  };
}

/** Forks from the last checkpoint of the answer's run, because that one includes the whole answer. */
async function fork({ metadata }: ChatMessage, known: string | undefined): Promise<string> {
  const conversationId = metadata?.conversationId ?? known;
  for (let cursor: string | undefined; conversationId && metadata?.runId; ) {
    const page = await readCheckpoints(conversationId, { cursor, limit: 200 });
    const checkpoint = page.items.find(({ run_id }) => run_id === metadata.runId);
    if (checkpoint) return (await forkConversation(conversationId, checkpoint.id)).id;
    if (!page.next) break;
    cursor = page.next;
  }
  throw new Problem(404, "checkpoint_not_found", "There is nothing to go on from.");
}
