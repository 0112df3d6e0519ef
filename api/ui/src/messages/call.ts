// A tool call is a part of a message: this file reads its tool, its state and its approval.
import type { ChatMessage, Part } from "../chat/message";

export type Call = Extract<Part, { toolCallId: string }>;

/** A planner makes a plan by it. */
export const PLAN_TOOL = "agent_create_plan";

export function isCall(part: Part): part is Call {
  return "toolCallId" in part;
}

/** The name is `server__tool`; the front end's own tools have no server. */
export function nameOf(call: Call): { server?: string; tool: string } {
  const name = call.type === "dynamic-tool" ? call.toolName : call.type.slice("tool-".length);
  const at = name.indexOf("__");
  return at > 0 ? { server: name.slice(0, at), tool: name.slice(at + 2) } : { tool: name };
}

export type Standing =
  /** The model is still writing its arguments. */
  | "preparing"
  | "running"
  /** The call waits for a human, or for this page. */
  | "asked"
  | "completed"
  | "failed"
  | "denied"
  /** No human has answered in time. */
  | "expired"
  /** The run has ended without an outcome. */
  | "unfinished";

/** Returns the state of a call; `isLive` says whether its run has not ended. */
export function standingOf(call: Call, isLive: boolean): Standing {
  switch (call.state) {
    case "output-available":
      return "completed";
    case "output-denied":
      return "denied";
    case "output-error":
      // No human answered the question, so the tool has not failed.
      return approvalOf(call)?.approved === false ? "expired" : "failed";
    case "input-streaming":
      return isLive ? "preparing" : "unfinished";
    case "approval-requested":
      // A cancelled run, or one that continued without the answer, leaves the question open.
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

/**
 * Returns the known facts of a call's approval. The history knows more than the SDK's types allow for the state of the
 * part.
 */
export function approvalOf(call: Call): { id: string; approved?: boolean; reason?: string; isEdited?: boolean } | undefined {
  return call.approval;
}

/**
 * Whether the front end executes the call, which on this page means that it asks the reader. The server marks a call
 * that a worker executes, once the worker starts it or a human denies it.
 */
export function isQuestion(call: Call): boolean {
  return !call.providerExecuted && !call.approval && call.state !== "input-streaming";
}

/**
 * Whether the approval asks about a call that had started before its worker was lost, so that its effect is unknown.
 * The server marks only a started call as executed by a worker.
 */
export function wasInterrupted(call: Call): boolean {
  return call.state === "approval-requested" && call.providerExecuted === true;
}

/** Whether a human has edited the input before the approval, according to the history. */
export function wasEdited(message: ChatMessage, approvalId: string): boolean {
  return message.parts.some((part) => part.type === "data-question" && part.data.approvalId === approvalId && part.data.edited === true);
}

/** Returns the calls' durations by their ids. */
export function durationsOf(message: ChatMessage): ReadonlyMap<string, number> {
  const calls = message.parts.filter((part) => part.type === "data-call");
  return new Map(calls.map(({ data }) => [data.toolCallId, data.durationMs]));
}

/** Formats a value for a person: a text unchanged, every other value as indented JSON. */
export function pretty(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Formats an input in one line, for the row of a call. */
export function inBrief(input: unknown): string {
  if (input === null || typeof input !== "object") return "";
  const fields = Object.entries(input).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return fields.join(", ").replace(/\s+/g, " ").slice(0, 160);
}
