// What a view needs of a chat. `useConversation` provides it; nothing below `shell/` and `messages/` knows of streams.
import type { Problem } from "../client/problem";
import type { ChatMessage } from "./message";

export type Progress =
  /** The history is being read. */
  | "loading"
  | "idle"
  /** Sent, and nothing has come yet. */
  | "submitted"
  | "streaming"
  /** The run waits for an approval or for an answer. */
  | "waiting";

export type Decision = { decision: "approve"; editedInput?: unknown } | { decision: "deny"; reason?: string };

export type ToolAnswer = { output: unknown } | { error: string };

/** How a question was answered elsewhere, where it was no longer open. */
export type Outcome = "done" | "answered elsewhere";

/** What has failed, and so what a retry does again. */
export type Failed =
  /** The history could not be read, or the stream is lost, and what has become of the run is not known. */
  | "reading"
  /** What was said last was refused, or never arrived. What is shown is what was there before; its text is in `unsent`. */
  | "sending"
  /** The run itself; the question is answered anew. */
  | "run";

/** What was said last, as long as the server does not have it. */
export interface Unsent {
  /** Nothing where only another answer is wanted. */
  text?: string;
  /** The message that it was to be said instead of. */
  instead?: string;
  /** Whether it is still on its way, and shown as said. Else it was refused, and is no longer among the messages. */
  isUnderway: boolean;
}

export interface Chat {
  /** The conversation's id, or the name that the page has given it before there was one. */
  id: string;
  /** The server's name for it, as soon as it is known; what a deep link has. */
  conversationId?: string;
  messages: ChatMessage[];
  progress: Progress;
  /** Whether the connection was lost and is being made again. */
  isReconnecting: boolean;
  /** When it is tried next, in ms since the epoch, where that takes a while. */
  nextTryAt?: number;
  /** What the agent says that it is doing, such as `executing_plan`. */
  doing?: string;
  /** A worker was lost: the next attempt, of so many. */
  retrying?: { attempt: number; of: number };
  /** Why the newest answer is not whole, or why something was refused. */
  problem?: Problem;
  /** With a problem: what a retry would do again. */
  failed?: Failed;
  unsent?: Unsent;
  /** Whether the chat has taken it: not while it answers, nor a blank text. What it does not take is still the writer's. */
  send(text: string): boolean;
  /** Cancels the run; what was said stays. */
  stop(): void;
  /** Tries now to reach the server. */
  tryNow(): void;
  /** Forgets what was refused, because its writer has changed it. */
  dismiss(): void;
  /** Does again what has failed: sends, or has the newest message answered again. */
  retry(): void;
  /** Answers the message before this answer again, instead of it. */
  regenerate(messageId: string): void;
  /** Says it differently: what follows is superseded. */
  edit(messageId: string, text: string): void;
  /**
   * Makes a version of a message part of the conversation again, with what followed it; the shown one is superseded. `versionId` is
   * the server's. A chat that is not idle does nothing. Rejects with a `Problem` if the server refuses.
   */
  restore(versionId: string): Promise<void>;
  /** Resolves as soon as nothing is on its way to the server, also after the chat was left; with what it does not have. */
  settled(): Promise<Unsent | undefined>;
  /** Decides about a call that waits for a human. Rejects with a `Problem` if the server refuses, as of an input that does not fit. */
  decide(message: ChatMessage, approvalId: string, decision: Decision): Promise<Outcome>;
  /** Answers a call of one of the front end's tools. */
  answer(message: ChatMessage, toolCallId: string, answer: ToolAnswer): Promise<Outcome>;
  /** A new conversation that goes on from this answer; its id. */
  fork(message: ChatMessage): Promise<string>;
}
