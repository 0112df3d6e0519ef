// This file declares the chat that a view needs. `useConversation` provides it; no file in `shell/` or `messages/`
// knows of streams.
import type { Problem } from "holdfast-client/problem";

import type { AgentContext } from "../client/context";
import type { FileRef } from "../client/files";
import type { ChatMessage } from "./message";

export type Progress =
  /** The page is reading the history. */
  | "loading"
  | "idle"
  /** The page has sent a message, and no chunk has arrived yet. */
  | "submitted"
  | "streaming"
  /** The run waits for an approval or for an answer. */
  | "waiting";

export type Decision = { decision: "approve"; editedInput?: unknown } | { decision: "deny"; reason?: string };

export type ToolAnswer = { output: unknown } | { error: string };

/** "answered elsewhere" means that another page had closed the question. */
export type Outcome = "done" | "answered elsewhere";

/** Names the failed operation, which a retry repeats. */
export type Failed =
  /** The page failed to read the history or lost the stream, and it does not know the run's outcome. */
  | "reading"
  /**
   * The server refused the newest message, or never received it. The page shows the earlier messages; the text is in
   * `unsent`.
   */
  | "sending"
  /** The run itself has failed; a retry answers the question again. */
  | "run";

/** The newest message, as long as the server does not have it. */
export interface Unsent {
  /** It is undefined if the reader wants only another answer. */
  text?: string;
  files?: FileRef[];
  /** The message that this text replaces. */
  instead?: string;
  /**
   * Whether the message is still in flight, and shown among the messages. Otherwise the server refused it, and the page
   * has removed it.
   */
  isUnderway: boolean;
}

/** A message that the server has while an answer is being made. */
export interface WaitingMessage {
  /** The server's id of the message. */
  id: string;
  /** The run that the message has, unless it joins the live one. */
  runId: string;
  text: string;
  files?: FileRef[];
  mode: WaitingMode;
}

/** A message in flight to the server while an answer is being made. */
export interface Posting {
  /** The idempotency key of all tries. */
  id: string;
  text: string;
  files?: FileRef[];
  mode: WaitingMode;
  context?: AgentContext;
  /** A held message waits for the server's return. A refused one belongs into the field again. */
  state?: "held" | "refused";
}

/** A message that steers joins the live run at its next step; another one is answered afterwards. */
export type WaitingMode = "steer" | "enqueue";

export interface Chat {
  /** The conversation's id, or the name that the page gave it before the conversation existed. */
  id: string;
  /** The server's id of the conversation, as soon as the page knows it; a deep link has it. */
  conversationId?: string;
  messages: ChatMessage[];
  progress: Progress;
  /** Whether the page has lost the connection and is reconnecting. */
  isReconnecting: boolean;
  /** The time of the next try, in ms since the epoch, if the pause is long. */
  nextTryAt?: number;
  /** The agent's own word for its current activity, such as `executing_plan`. */
  doing?: string;
  /** A worker was lost: the number of the next attempt, and the most attempts. */
  retrying?: { attempt: number; of: number };
  /** Says why the newest answer is incomplete, or why the server refused a request. */
  problem?: Problem;
  /** With a problem, it names what a retry repeats. */
  failed?: Failed;
  unsent?: Unsent;
  /** Whether the page can read messages before the first one, and how far that is. */
  earlier?: "more" | "loading" | "failed";
  /** The messages that no run has read, in the order of their posting. */
  waiting: WaitingMessage[];
  /** The messages that are in flight beside the answer, in the order of their posting. */
  posting: Posting[];
  /** Whether the chat takes messages beside the answer that is being made. */
  takesMore: boolean;
  /** The next messages name this context; without one, the server continues with the conversation's own. */
  speakFrom(context: AgentContext | undefined): void;
  /** Has the conversation of a new chat made by `make` before its first message; `make` returns the conversation's id. */
  beginWith(make: ((agentId: string | undefined) => Promise<string>) | undefined): void;
  /** Posts a message beside the answer that is being made. Resolves as soon as it is not in flight; `posting` has it if the server refuses it. */
  post(text: string, mode: WaitingMode, files?: FileRef[]): Promise<void>;
  /**
   * Takes a message back that waits or that the server does not have. Resolves with it, or with nothing if a run has
   * read the message. Rejects with a `Problem` if the server refuses.
   */
  takeBack<Message extends WaitingMessage | Posting>(message: Message): Promise<Message | undefined>;
  /**
   * Returns whether the chat has taken the text: it takes none while it answers, and no blank text without files. The
   * writer keeps a text that the chat does not take.
   */
  send(text: string, files?: FileRef[]): boolean;
  /** Cancels the run; the text so far stays. */
  stop(): void;
  /** Reads messages before the first one. */
  readEarlier(limit: number): void;
  /** Tries now to reach the server. */
  tryNow(): void;
  /** Forgets the refused message, because its writer has changed it. */
  dismiss(): void;
  /** Repeats the failed operation: sends, or has the newest message answered again. */
  retry(): void;
  /** Makes a run answer the message before this answer again, and replace this answer. */
  regenerate(messageId: string): void;
  /** Replaces the text and the files of a message and supersedes the messages after it. */
  edit(messageId: string, text: string, files?: FileRef[]): void;
  /**
   * Makes a version of a message part of the conversation again, with the messages that followed it, and supersedes the
   * shown version. `versionId` is the server's. A chat that is not idle does nothing. Rejects with a `Problem` if the
   * server refuses.
   */
  restore(versionId: string): Promise<void>;
  /**
   * Resolves as soon as no message is in flight to the server, also after the reader has left the chat. The result has
   * the messages that were in flight and that the server does not have. `wasSending` is whether the caller has seen the
   * newest message in flight.
   */
  settled(wasSending?: boolean): Promise<Unsent[]>;
  /**
   * Decides about a call that waits for a human. Rejects with a `Problem` if the server refuses, for example an input
   * that does not fit.
   */
  decide(message: ChatMessage, approvalId: string, decision: Decision): Promise<Outcome>;
  /** Answers a call of one of the front end's tools. */
  answer(message: ChatMessage, toolCallId: string, answer: ToolAnswer): Promise<Outcome>;
  /** Creates a conversation that continues from this answer, and returns its id. */
  fork(message: ChatMessage): Promise<string>;
}
