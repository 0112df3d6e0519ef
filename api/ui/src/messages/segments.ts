// This file gathers the parts of a message into segments, in order. The model's steps between two texts are one
// activity.
import { fileOf } from "../chat/files";
import type { Data, Part } from "../chat/message";
import { withSteps } from "../chat/plans";
import type { FileRef } from "../client/files";
import { type Call, isCall, isQuestion, nameOf, PLAN_TOOL } from "./call";

export type Item = { kind: "reasoning"; text: string; isStreaming: boolean; durationMs?: number } | { kind: "call"; call: Call };

/** `key` stays constant while the message grows. */
export type Segment = { key: string } & (
  | { kind: "text"; text: string; isStreaming: boolean }
  | { kind: "activity"; items: Item[] }
  /** The files that the tools before have returned. */
  | { kind: "files"; files: FileRef[] }
  /** A call with an approval, open or not. */
  | { kind: "approval"; call: Call }
  /** A call of a tool of this page. */
  | { kind: "question"; call: Call }
  | { kind: "plan"; plan: Data["plan"] }
  | { kind: "briefing"; briefing: Data["briefing"] }
  | { kind: "warning"; warning: Data["warning"] }
);

/** The page skips unknown parts. */
export function segmentsOf(parts: readonly Part[]): Segment[] {
  const segments: Segment[] = [];
  parts.forEach((part, index) => {
    const item = itemOf(part);
    const last = segments.at(-1);
    if (item && last?.kind === "activity") {
      last.items.push(item);
      return;
    }
    const file = fileOf(part);
    if (file && last?.kind === "files") {
      last.files.push(file);
      return;
    }
    const segment = item ? { key: `${index}`, kind: "activity" as const, items: [item] } : segmentOf(part, `${index}`, parts);
    if (segment) segments.push(segment);
  });
  return segments;
}

function itemOf(part: Part): Item | undefined {
  if (part.type === "reasoning") {
    return part.text.trim() === "" && part.state === "done" ? undefined : { kind: "reasoning", text: part.text, isStreaming: part.state === "streaming", ...durationOf(part) };
  }
  if (isCall(part) && !part.approval && !isQuestion(part)) return { kind: "call", call: part };
  return undefined;
}

/** Returns the duration of a part, if the server's history has it. */
function durationOf({ providerMetadata }: { providerMetadata?: Record<string, Record<string, unknown>> }): { durationMs?: number } {
  const durationMs = providerMetadata?.holdfast?.durationMs;
  return typeof durationMs === "number" ? { durationMs } : {};
}

function isApprovalOfPlan(part: Part): boolean {
  return isCall(part) && part.approval !== undefined && nameOf(part).tool === PLAN_TOOL;
}

function segmentOf(part: Part, key: string, parts: readonly Part[]): Segment | undefined {
  if (isCall(part)) return { key, kind: part.approval ? "approval" : "question", call: part };
  const file = fileOf(part);
  if (file) return { key, kind: "files", files: [file] };
  switch (part.type) {
    case "text":
      // The server puts two newlines between the texts of two steps; they show nothing and end no activity.
      return part.text.trim() === "" ? undefined : { key, kind: "text", text: part.text, isStreaming: part.state === "streaming" };
    case "data-plan":
      // A card shows the steps of a draft that waits for its approval.
      if (part.data.status === "draft" && parts.some(isApprovalOfPlan)) return undefined;
      return { key, kind: "plan", plan: withSteps(part.data, parts) };
    case "data-briefing":
      return { key, kind: "briefing", briefing: part.data };
    case "data-warning":
      return { key, kind: "warning", warning: part.data };
    default:
      return undefined;
  }
}
