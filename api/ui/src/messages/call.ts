// A tool call as a part of a message: whose it is, and how it stands.
import type { ChatMessage, Part } from "../chat/message";

export type Call = Extract<Part, { toolCallId: string }>;

export function isCall(part: Part): part is Call {
  return "toolCallId" in part;
}

/** `server__tool`; the front end's own tools have no server. */
export function nameOf(call: Call): { server?: string; tool: string } {
  const name = call.type === "dynamic-tool" ? call.toolName : call.type.slice("tool-".length);
  const at = name.indexOf("__");
  return at > 0 ? { server: name.slice(0, at), tool: name.slice(at + 2) } : { tool: name };
}

export type Standing =
  /** The model is still writing its arguments. */
  | "preparing"
  | "running"
  /** A human, or this page, is to answer. */
  | "asked"
  | "completed"
  | "failed"
  | "denied"
  /** Nobody has answered in time. */
  | "expired"
  /** The run has ended without an outcome. */
  | "unfinished";

/** How a call stands; `isLive` is whether its run still goes on. */
export function standingOf(call: Call, isLive: boolean): Standing {
  switch (call.state) {
    case "output-available":
      return "completed";
    case "output-denied":
      return "denied";
    case "output-error":
      // The question was answered by nobody: that is no failure of the tool.
      return approvalOf(call)?.approved === false ? "expired" : "failed";
    case "input-streaming":
      return isLive ? "preparing" : "unfinished";
    case "approval-requested":
      // A run that was cancelled, or went on without the answer, leaves the question behind.
      if (approvalOf(call)?.approved === false || !isLive) return "unfinished";
      return "asked";
    case "approval-responded":
      if (!call.approval.approved) return "denied";
      return isLive ? "running" : "unfinished";
    case "input-available":
      if (!isLive) return "unfinished";
      return isQuestion(call) ? "asked" : "running";
  }
}

/** What is known of a call's approval. The history knows more than the SDK's types allow for the state of the part. */
export function approvalOf(call: Call): { id: string; approved?: boolean; reason?: string; isEdited?: boolean } | undefined {
  return call.approval;
}

/**
 * Whether the call is of a tool that the front end executes, which means here that it asks the reader. Of those that a
 * worker executes, the server says so, once it does or has been told not to.
 */
export function isQuestion(call: Call): boolean {
  return !call.providerExecuted && !call.approval && call.state !== "input-streaming";
}

/**
 * Whether the approval is about a call that was begun before its worker was lost: nobody knows whether it took effect.
 * Only calls that a worker has begun are marked as executed by it.
 */
export function wasInterrupted(call: Call): boolean {
  return call.state === "approval-requested" && call.providerExecuted === true;
}

/** Whether somebody has changed the input before approving it, as the history tells it. */
export function wasEdited(message: ChatMessage, approvalId: string): boolean {
  return message.parts.some((part) => part.type === "data-question" && part.data.approvalId === approvalId && part.data.edited === true);
}

/** How long calls took, by their ids. */
export function durationsOf(message: ChatMessage): ReadonlyMap<string, number> {
  const calls = message.parts.filter((part) => part.type === "data-call");
  return new Map(calls.map(({ data }) => [data.toolCallId, data.durationMs]));
}

/** A value as a person reads it: a text as it is, everything else as indented JSON. */
export function pretty(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** An input in one line, for the row of a call. */
export function inBrief(input: unknown): string {
  if (input === null || typeof input !== "object") return "";
  const fields = Object.entries(input).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return fields.join(", ").replace(/\s+/g, " ").slice(0, 160);
}
