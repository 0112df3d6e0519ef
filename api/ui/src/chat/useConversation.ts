// This hook gives a view its conversation: the AI SDK's `useChat` on Holdfast's transport, with everything else that a
// chat page needs.
import { useChat } from "@ai-sdk/react";
import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";

import { Problem } from "../client/problem";
import { forkConversation, readCheckpoints } from "../client/server";
import { wake } from "../client/wake";
import type { Chat } from "./chat";
import { LiveChat } from "./live";
import { THROTTLE_MS } from "./liveState";
import type { ChatMessage } from "./message";
import { withVerdicts, type Verdicts } from "./questions";
import { restore } from "./restoring";
import { progressOf } from "./state";

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
    if (isNew) live.state.wantedAgentId = agentId;
  }, [live, isNew, agentId]);

  const state = useSyncExternalStore(live.state.subscribe, () => live.state.now);
  const { messages: folded, status } = useChat({ chat: live.sdk, throttle: THROTTLE_MS });
  const messages = useJudged(state.held ?? folded, state.verdicts);
  const does = useMemo(() => actionsOf(live), [live]);
  const progress = progressOf(state, status, messages);
  // Not `live.conversationId`: a render must read only the state that it renders, or React can lose effects on it.
  const conversationId = state.conversationId ?? conversationOf(folded);
  const { isReconnecting, nextTryAt, doing, retrying, problem, failed, unsent } = state;

  return useMemo(
    () => ({ id, conversationId, messages, progress, isReconnecting, nextTryAt, doing, retrying, problem, failed, unsent, ...does }),
    [id, conversationId, messages, progress, isReconnecting, nextTryAt, doing, retrying, problem, failed, unsent, does],
  );
}

function conversationOf(messages: ChatMessage[]): string | undefined {
  return messages.findLast((message) => message.metadata?.conversationId)?.metadata?.conversationId;
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

type Actions = Pick<Chat, "send" | "stop" | "tryNow" | "dismiss" | "retry" | "regenerate" | "edit" | "restore" | "settled" | "decide" | "answer" | "fork">;

function actionsOf({ state, reading, speaking, answering }: LiveChat): Actions {
  return {
    send: (text) => speaking.send(text),
    stop: () => void speaking.stop(),
    tryNow: wake,
    dismiss: () => speaking.dismiss(),
    retry: () => speaking.retry(),
    regenerate: (messageId) => speaking.regenerate(messageId),
    edit: (messageId, text) => speaking.edit(messageId, text),
    restore: (versionId) => restore(state, reading, versionId),
    settled: () => state.settled(),
    decide: (message, approvalId, decision) => answering.decide(message, approvalId, decision),
    answer: (message, toolCallId, answer) => answering.answer(message, toolCallId, answer),
    fork: (message) => fork(message, state.conversationId),
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
