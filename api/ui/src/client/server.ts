// These are the typed calls of a chat page. All of them reject with a `Problem`.
import { path } from "holdfast-client/address";

import { call, query } from "./call";
import type { AgentContext } from "./context";

export interface Page<T> {
  items: T[];
  /** The `cursor` of the next page. */
  next: string | null;
}

export interface Me {
  user: string;
  kind: "developer" | "jwt" | "anonymous";
  operator: boolean;
  default_session: string;
  /** The anonymous user's conversations, which the signed-in caller may claim. */
  claimable?: { conversations: number } | null;
}

export interface ServerInfo {
  version?: string;
  /** The deployment's model; an agent may have another model. */
  model: { provider: string; name: string; is_real: boolean } | null;
  storage?: string;
  /** A sentence about the fate of conversations on this server. */
  warning?: string | null;
  /** Whether the page locks the message field while an answer is being made. Older servers omit it. */
  composer?: "open" | "locked";
}

export interface SessionName {
  session_id: string;
  conversation_id: string;
}

export interface Briefing {
  id: string;
  agent_id: string;
  title: string;
  summary: string;
  priority: string | null;
  created_at: string;
}

export interface Agent {
  id: string;
  name: string;
  description?: string | null;
  /** `planner` for an agent that makes plans and reads the context of messages. */
  kind?: string;
  /** The agent's own model, if it has one. */
  model?: { name?: string | null } | null;
}

export interface Conversation {
  id: string;
  title: string | null;
  agent_id: string | null;
  /** The run that works, waits for an answer, or is next. */
  live_run_id: string | null;
  forked_from: string | null;
  /** The conversation that this one continues. Older servers omit it. */
  forked_conversation_id?: string | null;
  created_at: string;
  last_message_at: string | null;
  /** The collections that its runs answer from; an older server omits it, and so does one without any. */
  knowledge?: string[];
  /** The context of the newest message that has one; lists leave it out. */
  context?: AgentContext | null;
  /** A search sets it: the message that contains the searched text. */
  found?: { message_id: string; client_id?: string; excerpt: string } | null;
}

export interface Run {
  id: string;
  conversation_id: string;
  status: "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
  input_message_id: string;
  error: { code: string; message: string } | null;
}

export interface Approval {
  id: string;
  run_id: string;
  call_id: string;
  status: "pending" | "approved" | "denied" | "expired" | "superseded" | "cancelled";
  reason: string | null;
  edited_input: unknown;
}

export interface Checkpoint {
  id: string;
  run_id: string;
  node: string;
}

type Listing = { cursor?: string; limit?: number; signal?: AbortSignal };

/** Returns the caller's identity; rejects with 401 where the caller must sign in. */
export const me = (options: { asAnonymous?: boolean; as?: string } = {}) => call<Me>("/v1/users/me", options);

/** Gives the anonymous user's conversations to the signed-in caller. */
export const claimConversations = (options: { as?: string } = {}) => call<{ conversations: number }>("/v1/users/me/claim", { method: "POST", ...options });

export const readServer = () => call<ServerInfo>("/v1/server");

/**
 * Returns the server's warnings about itself, such as that it may lose its data. A server that is not ready does not
 * warn.
 */
export const readWarnings = async (): Promise<string[]> => (await call<{ warnings?: string[] }>("/readyz")).warnings ?? [];

export const readAgents = ({ cursor, limit, signal }: Listing = {}) =>
  call<Page<Agent>>(`/v1/agents${query({ cursor, limit })}`, { signal });

/**
 * Newest activity comes first; `q` finds a text in titles and messages, and `project_id` the conversations about a project
 * of the workspace. A page of the latter may be shorter than `limit`, and not be the last one.
 */
export const readConversations = ({ q, project_id, cursor, limit, signal }: Listing & { q?: string; project_id?: string } = {}) =>
  call<Page<Conversation>>(`/v1/conversations${query({ q, project_id, cursor, limit })}`, { signal });

export const readRun = (id: string) => call<Run>(path`/v1/runs/${id}`);

/** The newest run comes first. */
export const readRuns = ({ conversationId, status, limit }: { conversationId?: string; status?: Run["status"]; limit?: number }) =>
  call<Page<Run>>(`/v1/runs${query({ conversation_id: conversationId, status, limit })}`);

export const readSessions = ({ limit }: Listing = {}) => call<Page<SessionName>>(`/v1/sessions${query({ limit })}`);

/** The newest briefing comes first. */
export const readBriefings = ({ cursor, limit }: Listing = {}) => call<Page<Briefing>>(`/v1/briefings${query({ cursor, limit })}`);

/** Returns the conversation in which the reader talks about the briefing. */
export const talkAboutBriefing = (id: string) =>
  call<{ conversation_id: string }>(path`/v1/briefings/${id}/actions/start_conversation`, { method: "POST" });

export const deleteBriefing = (id: string) => call<void>(path`/v1/briefings/${id}`, { method: "DELETE" });

export const readConversation = (id: string) => call<Conversation>(path`/v1/conversations/${id}`);

/** `null` removes the title. */
export const renameConversation = (id: string, title: string | null) =>
  call<Conversation>(path`/v1/conversations/${id}`, { method: "PATCH", body: { title } });

/** Whether the reader has any collection. */
export const anyCollection = async () => (await call<Page<unknown>>("/v1/collections?limit=1")).items.length > 0;

export const deleteConversation = (id: string) => call<void>(path`/v1/conversations/${id}`, { method: "DELETE" });

/**
 * Returns the newest messages of a chat before a cursor, oldest first, in the AI SDK's form, and the cursor of those before
 * them, if there are any. For an unknown chat the list is empty.
 */
export async function readMessages<M>(chatId: string, which: { limit: number; before?: string }): Promise<{ messages: M[]; earlier?: string }> {
  let link: string | null = null;
  const messages = await call<M[]>(`${path`/api/chat/${chatId}/messages`}${query(which)}`, { onOpen: ({ headers }) => (link = headers.get("link")) });
  return { messages, earlier: /[?&]before=([0-9a-f-]+)>/.exec(link ?? "")?.[1] };
}

/** Takes a message back that no run has read; rejects with `run_begun` otherwise. */
export const takeBack = (runId: string) => call<Run>(path`/v1/runs/${runId}/take_back`, { method: "POST" });

/** Ends one answer of a chat: the named run, the answer to the named message, or else the one at work. */
export const stopAnswer = (chatId: string, what: { runId?: string; messageId?: string }) =>
  call<{ success: boolean }>(`${path`/api/chat/${chatId}/stop`}${query(what)}`, { method: "POST" });

/** Makes a version of a message part of its conversation again, instead of the current version. */
export const restoreMessage = (conversationId: string, messageId: string) =>
  call<unknown>(path`/v1/conversations/${conversationId}/messages/${messageId}/restore`, { method: "POST" });

export const readApprovals = async (runId: string) => (await call<{ items: Approval[] }>(path`/v1/runs/${runId}/approvals`)).items;

export const decideApproval = (
  runId: string,
  approvalId: string,
  body: { decision: "approve" | "deny"; reason?: string; edited_input?: unknown },
) => call<Run>(path`/v1/runs/${runId}/approvals/${approvalId}`, { method: "POST", body });

export const bringToolResult = (runId: string, callId: string, body: { output: unknown } | { error: string }) =>
  call<Run>(path`/v1/runs/${runId}/tool_results/${callId}`, { method: "POST", body });

export const readCheckpoints = (conversationId: string, { cursor, limit }: Listing = {}) =>
  call<Page<Checkpoint>>(`${path`/v1/conversations/${conversationId}/checkpoints`}${query({ cursor, limit })}`);

/** Creates a conversation that continues from a checkpoint. */
export const forkConversation = (conversationId: string, checkpointId: string) =>
  call<Conversation>(path`/v1/conversations/${conversationId}/fork`, { method: "POST", body: { checkpoint_id: checkpointId } });
