// A conversation for a view: the AI SDK's `useChat` on Holdfast's transport, with all that a chat page needs beside it.
import { useChat } from "@ai-sdk/react";
import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";

import { newId } from "../client/id";
import { Problem } from "../client/problem";
import { bringToolResult, decideApproval, forkConversation, readCheckpoints } from "../client/server";
import type { Chat, Decision, Outcome, ToolAnswer } from "./chat";
import { LiveChat, THROTTLE_MS } from "./live";
import type { ChatMessage } from "./message";
import { isWaiting, withOutcome, withVerdicts, type Verdicts } from "./questions";
import { progressOf } from "./state";

export interface Named {
  /** The conversation's, or a new UUID for one that is to be. */
  id: string;
  /** Whose conversation a new one will be. */
  agentId?: string;
  /** Whether nothing was said in it yet, so that there is nothing to read. */
  isNew: boolean;
}

/** The chat of an id. It begins anew with another id, and with no other change. */
export function useConversation({ id, agentId, isNew }: Named): Chat {
  // What was new stays the same chat when it is not new any more.
  const live = useMemo(() => new LiveChat(id, isNew), [id]);
  useEffect(() => live.open(), [live]);
  useEffect(() => {
    // Until it has begun, one may change one's mind; then it is the conversation's.
    if (isNew) live.agentId = agentId;
  }, [live, isNew, agentId]);

  const state = useSyncExternalStore(live.subscribe, () => live.state);
  const { messages: folded, status } = useChat({ chat: live.sdk, throttle: THROTTLE_MS });
  const messages = useJudged(state.held ?? folded, state.verdicts);
  const does = useMemo(() => actionsOf(live), [live]);
  const progress = progressOf(state, status, messages);
  // Not `live.conversationId`: what is read while rendering must be what was rendered for, or effects on it can be lost.
  const conversationId = state.conversationId ?? conversationOf(folded);
  const { isReconnecting, doing, retrying, problem, failed } = state;

  return useMemo(
    () => ({ id, conversationId, messages, progress, isReconnecting, doing, retrying, problem, failed, ...does }),
    [id, conversationId, messages, progress, isReconnecting, doing, retrying, problem, failed, does],
  );
}

function conversationOf(messages: ChatMessage[]): string | undefined {
  return messages.findLast((message) => message.metadata?.conversationId)?.metadata?.conversationId;
}

/** The messages with what is known of their approvals; the same objects as long as nothing of them changes. */
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

type Actions = Pick<Chat, "send" | "stop" | "retry" | "regenerate" | "edit" | "decide" | "answer" | "fork">;

function actionsOf(live: LiveChat): Actions {
  const { sdk } = live;
  const metadata = () => ({ createdAt: new Date().toISOString() });

  /** `messageId` is the message that it is said instead of. */
  const put = (text: string, messageId?: string) => {
    const headers = { "idempotency-key": newId() };
    void live.say(
      () => sdk.sendMessage({ text, messageId, metadata: metadata() }, { headers }),
      // The message is there already, so it is put in its own place; the server is told the same as before.
      () => sdk.sendMessage({ text, messageId: sdk.lastMessage?.id, metadata: metadata() }, { headers, body: { messageId } }),
    );
  };
  const regenerate = (messageId?: string) => {
    const headers = { "idempotency-key": newId() };
    void live.say(
      () => sdk.regenerate({ messageId, headers }),
      () => sdk.regenerate({ headers }),
    );
  };
  /** Gives an answer, and goes on with the run if nothing else is open. */
  const give = async (message: ChatMessage, answering: (runId: string) => Promise<unknown>, keep: () => void): Promise<Outcome> => {
    const runId = message.metadata?.runId;
    if (!runId) throw new Problem(0, "run_not_waiting", "This message has no run.");
    try {
      await answering(runId);
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409) throw error;
      void live.read();
      return "answered elsewhere";
    }
    keep();
    live.tell();
    const last = sdk.lastMessage && withVerdicts(sdk.lastMessage, live.state.verdicts);
    if (!isWaiting(last)) void live.resume();
    return "done";
  };

  return {
    send: (text) => {
      if (text.trim() !== "" && !live.isAsking && !live.state.isLoading) put(text);
    },
    stop: () => void live.stop(),
    retry: () => live.retry(() => regenerate()),
    regenerate,
    edit: (messageId, text) => {
      if (text.trim() !== "") put(text, messageId);
    },
    decide: (message, approvalId, decision) =>
      give(
        message,
        (runId) => decideApproval(runId, approvalId, asked(decision)),
        () => live.judge(approvalId, verdictOf(decision)),
      ),
    answer: (message, toolCallId, answer: ToolAnswer) =>
      give(
        message,
        (runId) => bringToolResult(runId, toolCallId, answer),
        () => {
          sdk.messages = withOutcome(sdk.messages, toolCallId, answer);
        },
      ),
    fork: (message) => fork(message, live.conversationId),
  };
}

function asked(decision: Decision): Parameters<typeof decideApproval>[2] {
  if (decision.decision === "deny") return { decision: "deny", reason: decision.reason || undefined };
  return { decision: "approve", edited_input: decision.editedInput };
}

function verdictOf(decision: Decision): { approved: boolean; reason?: string } {
  if (decision.decision === "approve") return { approved: true };
  return { approved: false, ...(decision.reason ? { reason: decision.reason } : {}) };
}

/** From the last checkpoint of the answer's run: there, all of the answer is told. */
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
