/** The parts of an answer that have begun and not ended. */
import { EventType, type BaseEvent } from "@ag-ui/client";

/** The events that begin and end a part, and the field with its name. */
const PARTS = [
  { begin: EventType.TEXT_MESSAGE_START, end: EventType.TEXT_MESSAGE_END, field: "messageId" },
  { begin: EventType.REASONING_MESSAGE_START, end: EventType.REASONING_MESSAGE_END, field: "messageId" },
  { begin: EventType.REASONING_START, end: EventType.REASONING_END, field: "messageId" },
  { begin: EventType.TOOL_CALL_START, end: EventType.TOOL_CALL_END, field: "toolCallId" },
  { begin: EventType.STEP_STARTED, end: EventType.STEP_FINISHED, field: "stepName" },
] as const;

/**
 * Balances what begins and ends. A worker that is lost may have sent events that its log has lost with it. The next worker's events
 * then end parts that this client never saw, and leave others open.
 */
export class OpenParts {
  private readonly open = new Map<string, BaseEvent>();
  /** The first reasoning of the answer. */
  private reasoning: string | undefined;

  /** Returns the event without what this client cannot take, after the ends of what a snapshot leaves open. */
  pass(event: BaseEvent): BaseEvent[] {
    for (const { begin, end, field } of PARTS) {
      const name = `${end} ${String((event as unknown as Record<string, unknown>)[field])}`;
      if (event.type === begin) {
        if (this.open.has(name)) return [];
        this.open.set(name, { type: end, [field]: (event as unknown as Record<string, unknown>)[field] } as BaseEvent);
      }
      if (event.type === end && !this.open.delete(name)) return [];
    }
    if (event.type === EventType.REASONING_MESSAGE_START) {
      this.reasoning ??= (event as unknown as { messageId: string }).messageId;
    }
    if (event.type !== EventType.MESSAGES_SNAPSHOT) return [event];
    const ends = PARTS.flatMap(({ end }) => [...this.open.values()].filter(({ type }) => type === end));
    this.open.clear();
    return [...ends, this.withReasoning(event)];
  }

  /** The client keeps its reasoning if a snapshot has none, so the snapshot gets an empty one, which the next attempt fills. */
  private withReasoning(event: BaseEvent): BaseEvent {
    const { messages } = event as unknown as { messages: { role: string }[] };
    if (this.reasoning === undefined || messages.some(({ role }) => role === "reasoning")) return event;
    const empty = { id: this.reasoning, role: "reasoning", content: "" };
    return { ...event, messages: [...messages, empty] } as BaseEvent;
  }
}
