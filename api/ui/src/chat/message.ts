// A message of the chat as the page has it: what the AI SDK folds, and what Holdfast says beside it.
import type { UIMessage } from "ai";

export type Metadata = {
  runId?: string;
  conversationId?: string;
  /** RFC 3339. */
  createdAt?: string;
  /** How the run has ended. */
  status?: "completed" | "failed" | "cancelled";
  /** Why the model ended it, such as `stop`, `length` or `content_filter`. */
  finish_reason?: string;
  error?: { code: string; message: string };
  /** Which of several versions the message is; a message of one version has none. */
  version?: Version;
  usage?: { input_tokens: number; output_tokens: number; cached_tokens: number; reasoning_tokens: number };
};

/** The place of a message among its versions, oldest first. An edit makes a version of a question, "Answer again" one of an answer. */
export type Version = {
  /** From 1. */
  number: number;
  /** At least 2. */
  count: number;
  /** The ids of the versions before and after, as the server knows them. */
  previous: string | null;
  next: string | null;
};

/** The `data-*` parts. */
export type Data = {
  /** What the agent is doing. It is told and not kept: no message has this part. */
  state: { state: string };
  context: { tokens: number; budget: number; compressed: boolean };
  warning: { code: string; message: string };
  /** A worker was lost, and another one has taken over; what it took back is no longer part of the answer. */
  attempt: { attempt: number; base: string; crashes: number; maxCrashes: number };
  /** What is known of a call beside its output. */
  call: { toolCallId: string; durationMs: number };
  /** An approval beside its id. */
  question: { approvalId: string; callId: string; kind: string; edited?: boolean };
  /** A card. */
  briefing: { briefing_id: string; title: string; summary: string; priority?: string; agent_id?: string; created_at?: string };
  /** A list of steps that fills in; the planner sends it. */
  plan: { title?: string; steps: { id: string; title: string; status: "pending" | "active" | "completed" | "failed" | "skipped" }[] };
};

export type ChatMessage = UIMessage<Metadata, Data>;
export type Part = ChatMessage["parts"][number];

/** The limit that kept the model from saying all of it. */
export function cutOffBy({ metadata }: ChatMessage): "length" | "content_filter" | undefined {
  const reason = metadata?.finish_reason;
  return reason === "length" || reason === "content_filter" ? reason : undefined;
}

/** What was said, as markdown. */
export function textOf(message: ChatMessage): string {
  const texts = message.parts.filter((part) => part.type === "text").map((part) => part.text.trim());
  return texts.filter((text) => text !== "").join("\n\n");
}
