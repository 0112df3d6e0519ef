// A message may ask its reader: by approvals, and by calls of the front end's tools. This file also adds the approvals'
// verdicts, which a stream does not have.
import { isToolUIPart } from "ai";

import type { ChatMessage, Part } from "./message";

export type Verdict = { approved: boolean; reason?: string; isEdited?: boolean };

/** The key is the approval's id. */
export type Verdicts = ReadonlyMap<string, Verdict>;

/**
 * This type has the fields of a call that this file needs. The SDK's types tie `approved` to the state more closely
 * than its own folding does.
 */
type Call = { toolCallId: string; state: string; providerExecuted?: boolean; approval?: { id: string; approved?: boolean } };

function callOf(part: Part): Call | undefined {
  return isToolUIPart(part) ? (part as Call) : undefined;
}

/** Whether the run waits for its reader: an ended run has its usage, and has no more questions. */
export function isWaiting(message: ChatMessage | undefined): boolean {
  return message?.role === "assistant" && !message.metadata?.usage && message.parts.some(isOpen);
}

export function isOpen(part: Part): boolean {
  const call = callOf(part);
  if (call?.state === "approval-requested") return call.approval?.approved === undefined;
  return call?.state === "input-available" && !call.providerExecuted;
}

/** Whether a reader has answered one of the message's approvals, and the page does not know the verdict. */
export function hasUnknownVerdicts(message: ChatMessage, verdicts: Verdicts): boolean {
  return message.parts.some((part) => {
    const call = callOf(part);
    if (!call?.approval || call.state === "approval-requested") return false;
    return call.approval.approved === undefined && !verdicts.has(call.approval.id);
  });
}

/** Returns the message with the known verdicts of its approvals, or the message itself if none is known. */
export function withVerdicts(message: ChatMessage, verdicts: Verdicts): ChatMessage {
  if (verdicts.size === 0 || message.role !== "assistant") return message;
  const parts = message.parts.map((part) => judged(part, verdicts));
  return parts.some((part, index) => part !== message.parts[index]) ? { ...message, parts } : message;
}

function judged(part: Part, verdicts: Verdicts): Part {
  const call = callOf(part);
  const verdict = call?.approval && verdicts.get(call.approval.id);
  if (!call?.approval || call.approval.approved !== undefined || !verdict) return part;
  const state = call.state === "approval-requested" ? "approval-responded" : call.state;
  return { ...part, state, approval: { ...call.approval, ...verdict } } as Part;
}

/**
 * Returns the messages with the newest one's questions closed, because the reader sent another message instead of an
 * answer.
 */
export function withoutQuestions(messages: ChatMessage[]): ChatMessage[] {
  const last = messages.at(-1);
  if (!last || !isWaiting(last)) return messages;
  const parts = last.parts.map((part) => {
    const call = callOf(part);
    if (call?.state !== "approval-requested") return part;
    return { ...part, approval: { ...call.approval, approved: false } } as Part;
  });
  return [...messages.slice(0, -1), { ...last, parts }];
}

/** Returns the messages with the outcome of a call that the reader has answered. */
export function withOutcome(messages: ChatMessage[], callId: string, outcome: { output: unknown } | { error: string }): ChatMessage[] {
  const known = "error" in outcome ? { state: "output-error", errorText: outcome.error } : { state: "output-available", ...outcome };
  const isIt = (part: Part) => callOf(part)?.toolCallId === callId;
  return messages.map((message) => {
    if (!message.parts.some(isIt)) return message;
    return { ...message, parts: message.parts.map((part) => (isIt(part) ? ({ ...part, ...known } as Part) : part)) };
  });
}
