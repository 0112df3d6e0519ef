// The calls of a chat page, typed. All of them reject with a `Problem`.
import { call, path, query } from "./call";

export interface Page<T> {
  items: T[];
  /** The `cursor` of the page behind it. */
  next: string | null;
}

export interface Me {
  user: string;
  kind: "developer" | "jwt" | "anonymous";
  operator: boolean;
  default_session: string;
  /** The anonymous user's conversations, which the signed-in caller may take over. */
  claimable?: { conversations: number } | null;
}

export interface ServerInfo {
  version?: string;
  /** The model of the deployment; agents may have another one. */
  model: { provider: string; name: string; is_real: boolean } | null;
  storage?: string;
  /** A sentence about what may happen to conversations here. */
  warning?: string | null;
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
  /** Its own model, if it has one. */
  model?: { name?: string | null } | null;
}

export interface Conversation {
  id: string;
  title: string | null;
  agent_id: string | null;
  /** The run that is at work, waits for an answer, or is next. */
  live_run_id: string | null;
  forked_from: string | null;
  /** The conversation that it continues. Older servers do not tell it. */
  forked_conversation_id?: string | null;
  created_at: string;
  last_message_at: string | null;
  /** Of a search: the message that has what was searched for. */
  found?: { message_id: string; client_id?: string; excerpt: string } | null;
}

export interface Run {
  id: string;
  conversation_id: string;
  status: "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled";
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

/** Who one is; 401 where somebody has to sign in. */
export const me = (asked: { asNobody?: boolean; as?: string } = {}) => call<Me>("/v1/users/me", asked);

/** Gives the anonymous user's conversations to the signed-in caller. */
export const claimConversations = (asked: { as?: string } = {}) => call<{ conversations: number }>("/v1/users/me/claim", { method: "POST", ...asked });

export const readServer = () => call<ServerInfo>("/v1/server");

/** What the server has to say about itself, such as that what it keeps may not last. Not ready is not a warning. */
export const readWarnings = async (): Promise<string[]> => (await call<{ warnings?: string[] }>("/readyz")).warnings ?? [];

export const readAgents = ({ cursor, limit, signal }: Listing = {}) =>
  call<Page<Agent>>(`/v1/agents${query({ cursor, limit })}`, { signal });

/** Newest activity first; `q` finds a text in titles and messages. */
export const readConversations = ({ q, cursor, limit, signal }: Listing & { q?: string } = {}) =>
  call<Page<Conversation>>(`/v1/conversations${query({ q, cursor, limit })}`, { signal });

/** Newest first. */
export const readRuns = ({ status, limit }: { status?: Run["status"]; limit?: number }) => call<Page<Run>>(`/v1/runs${query({ status, limit })}`);

export const readSessions = ({ limit }: Listing = {}) => call<Page<SessionName>>(`/v1/sessions${query({ limit })}`);

/** Newest first. */
export const readBriefings = ({ cursor, limit }: Listing = {}) => call<Page<Briefing>>(`/v1/briefings${query({ cursor, limit })}`);

/** The conversation in which the briefing is talked about. */
export const talkAboutBriefing = (id: string) =>
  call<{ conversation_id: string }>(path`/v1/briefings/${id}/actions/start_conversation`, { method: "POST" });

export const deleteBriefing = (id: string) => call<void>(path`/v1/briefings/${id}`, { method: "DELETE" });

export const readConversation = (id: string) => call<Conversation>(path`/v1/conversations/${id}`);

/** `null` takes the title away. */
export const renameConversation = (id: string, title: string | null) =>
  call<Conversation>(path`/v1/conversations/${id}`, { method: "PATCH", body: { title } });

export const deleteConversation = (id: string, { keepalive }: { keepalive?: boolean } = {}) =>
  call<void>(path`/v1/conversations/${id}`, { method: "DELETE", keepalive });

/** What was said in a chat, oldest first, in the AI SDK's form; empty for a chat that nobody knows. */
export const readMessages = <M>(chatId: string) => call<M[]>(path`/api/chat/${chatId}/messages`);

/** Cancels what is at work in a chat. */
export const stopChat = (chatId: string) => call<{ success: boolean }>(path`/api/chat/${chatId}/stop`, { method: "POST" });

/** Makes a version of a message part of its conversation again, instead of the one that is there now. */
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

/** A new conversation that goes on from a checkpoint. */
export const forkConversation = (conversationId: string, checkpointId: string) =>
  call<Conversation>(path`/v1/conversations/${conversationId}/fork`, { method: "POST", body: { checkpoint_id: checkpointId } });
