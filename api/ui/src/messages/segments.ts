// What a message shows, in order: its parts gathered into segments. What the model does between two texts is one activity.
import type { Data, Part } from "../chat/message";
import { type Call, isCall, isQuestion } from "./call";

export type Item = { kind: "reasoning"; text: string; isStreaming: boolean; durationMs?: number } | { kind: "call"; call: Call };

/** `key` stays the same while the message grows. */
export type Segment = { key: string } & (
  | { kind: "text"; text: string; isStreaming: boolean }
  | { kind: "activity"; items: Item[] }
  /** A call that a human was asked about, whether or not it is answered. */
  | { kind: "approval"; call: Call }
  /** A call of a tool of this page. */
  | { kind: "question"; call: Call }
  | { kind: "plan"; plan: Data["plan"] }
  | { kind: "briefing"; briefing: Data["briefing"] }
  | { kind: "warning"; warning: Data["warning"] }
  /** Older messages were summarised for this answer. */
  | { kind: "compressed" }
);

/** Parts that nobody here knows are passed over. */
export function segmentsOf(parts: readonly Part[]): Segment[] {
  const segments: Segment[] = [];
  parts.forEach((part, index) => {
    const item = itemOf(part);
    const last = segments.at(-1);
    if (item && last?.kind === "activity") {
      last.items.push(item);
      return;
    }
    const segment = item ? { key: `${index}`, kind: "activity" as const, items: [item] } : segmentOf(part, `${index}`);
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

/** How long it took, as the server's history tells it. */
function durationOf({ providerMetadata }: { providerMetadata?: Record<string, Record<string, unknown>> }): { durationMs?: number } {
  const durationMs = providerMetadata?.holdfast?.durationMs;
  return typeof durationMs === "number" ? { durationMs } : {};
}

function segmentOf(part: Part, key: string): Segment | undefined {
  if (isCall(part)) return { key, kind: part.approval ? "approval" : "question", call: part };
  switch (part.type) {
    case "text":
      // Between what two steps say there are two newlines, which are nothing to show and end no activity.
      return part.text.trim() === "" ? undefined : { key, kind: "text", text: part.text, isStreaming: part.state === "streaming" };
    case "data-plan":
      return { key, kind: "plan", plan: part.data };
    case "data-briefing":
      return { key, kind: "briefing", briefing: part.data };
    case "data-warning":
      return { key, kind: "warning", warning: part.data };
    case "data-context":
      return part.data.compressed ? { key, kind: "compressed" } : undefined;
    default:
      return undefined;
  }
}
