// A chat message as the page has it: the AI SDK folds its parts, and Holdfast adds the metadata and data.
import type { UIMessage } from "ai";

export type Metadata = {
  runId?: string;
  conversationId?: string;
  /** RFC 3339. */
  createdAt?: string;
  /** The outcome of the run. */
  status?: "completed" | "failed" | "cancelled";
  /** The model's reason for its end, such as `stop`, `length` or `content_filter`. */
  finish_reason?: string;
  error?: { code: string; message: string };
  /** The message's number among its versions; a message with one version has none. */
  version?: Version;
  usage?: { input_tokens: number; output_tokens: number; cached_tokens: number; reasoning_tokens: number };
};

/**
 * The position of a message among its versions, oldest first. An edit makes a version of a question, "Answer again" one
 * of an answer.
 */
export type Version = {
  /** The number starts at 1. */
  number: number;
  /** The count is at least 2. */
  count: number;
  /** The server's ids of the versions before and after. */
  previous: string | null;
  next: string | null;
};

type PlanStep = {
  stepNumber: number;
  description: string;
  tools: string[];
  executorRequired: boolean;
  dependsOn: number[];
  status: "pending" | "executing" | "completed" | "failed";
  result?: string;
  error?: string;
  /** The run of the step's subagent. */
  runId?: string;
};

/** The `data-*` parts. */
export type Data = {
  /** The agent's current activity. The stream has it and the history does not: no message has this part. */
  state: { state: string };
  context: {
    tokens: number;
    budget: number;
    compressed: boolean;
    /** The first message that the model reads word by word, if there are older ones. */
    verbatim_from?: string;
    /** The id of that message that its client has chosen. */
    verbatim_from_client_id?: string;
  };
  warning: { code: string; message: string };
  /**
   * A worker was lost, and another one has taken over; the chunks that it took back are no longer part of the answer.
   */
  attempt: { attempt: number; base: string; crashes: number; maxCrashes: number };
  /** The facts of a call beside its output. */
  call: { toolCallId: string; durationMs: number; entities?: { kind: string; id: string; name: string }[] };
  /** The facts of an approval beside its id. */
  question: { approvalId: string; callId: string; kind: string; edited?: boolean };
  /** A message of the reader has joined the run. */
  steered: { message_id: string };
  /** Questions that have ended the run. */
  questions: { questions: string[]; round: number };
  /** A briefing card. */
  briefing: { briefing_id: string; title: string; summary: string; priority?: string; agent_id?: string; created_at?: string };
  /** A plan; a later part with its id replaces it. */
  plan: { id: string; status: "draft" | "approved" | "executing" | "completed" | "failed"; steps: PlanStep[]; metadata: { goal: string } };
  /** The newest state of a step. */
  step: { planId: string; step: PlanStep };
  /** A run that answers a call, or takes a step of a plan. */
  subagent: { call_id: string; child_run_id: string };
};

export type ChatMessage = UIMessage<Metadata, Data>;
export type Part = ChatMessage["parts"][number];

/** Returns the limit that kept the model from finishing its answer. */
export function cutOffBy({ metadata }: ChatMessage): "length" | "content_filter" | undefined {
  const reason = metadata?.finish_reason;
  return reason === "length" || reason === "content_filter" ? reason : undefined;
}

/** Returns the questions with which the run has ended. */
export function questionsOf({ parts }: ChatMessage): string[] {
  return parts.findLast((part) => part.type === "data-questions")?.data.questions ?? [];
}

/** Returns the message's text as markdown. */
export function textOf(message: ChatMessage): string {
  const texts = message.parts.filter((part) => part.type === "text").map((part) => part.text.trim());
  return texts.filter((text) => text !== "").join("\n\n");
}
