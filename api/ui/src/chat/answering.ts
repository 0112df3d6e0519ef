// This file answers the questions of a run: its approvals, and its calls of the front end's tools. The first answer
// counts. A reader whose answer comes second sees that another page has answered the card.
import { Problem } from "../client/problem";
import { bringToolResult, decideApproval } from "../client/server";
import type { Decision, Outcome, ToolAnswer } from "./chat";
import type { LiveState } from "./liveState";
import type { ChatMessage } from "./message";
import { isWaiting, type Verdict, withOutcome, withVerdicts } from "./questions";
import type { Reading } from "./reading";
import type { Speaking } from "./speaking";

export class Answering {
  /** The answers that this page has sent without learning whether they arrived. */
  readonly #unsure = new Set<string>();

  constructor(
    readonly live: LiveState,
    readonly reading: Reading,
    readonly speaking: Speaking,
  ) {}

  decide(message: ChatMessage, approvalId: string, decision: Decision): Promise<Outcome> {
    const { live } = this;
    return this.#give(
      message,
      approvalId,
      (runId) => decideApproval(runId, approvalId, questionId(decision)),
      () => live.set({ verdicts: new Map(live.now.verdicts).set(approvalId, verdictOf(decision)) }),
    );
  }

  answer(message: ChatMessage, toolCallId: string, answer: ToolAnswer): Promise<Outcome> {
    const { live } = this;
    return this.#give(
      message,
      toolCallId,
      (runId) => bringToolResult(runId, toolCallId, answer),
      () => {
        const { held } = live.now;
        live.sdk.messages = withOutcome(live.sdk.messages, toolCallId, answer);
        if (held) live.set({ held: withOutcome(held, toolCallId, answer) });
      },
    );
  }

  /** Sends an answer, and follows the run if no other question is open. */
  async #give({ metadata }: ChatMessage, questionId: string, give: (runId: string) => Promise<unknown>, keep: () => void): Promise<Outcome> {
    const { live } = this;
    const runId = metadata?.runId;
    if (!runId) throw new Problem(0, "run_not_waiting", "This message has no run.");
    try {
      await give(runId);
    } catch (error) {
      if (error instanceof Problem && error.status === 0) this.#unsure.add(questionId);
      if (!(error instanceof Problem) || error.status !== 409) throw error;
      void this.reading.hear();
      return this.#unsure.has(questionId) ? "done" : "answered elsewhere";
    }
    keep();
    live.tell();
    // A reader that answers wants the run to continue.
    this.speaking.dropStop();
    const last = live.shown.at(-1);
    if (!last || !isWaiting(withVerdicts(last, live.now.verdicts))) void this.reading.resume(runId);
    return "done";
  }
}

function questionId(decision: Decision): Parameters<typeof decideApproval>[2] {
  if (decision.decision === "deny") return { decision: "deny", reason: decision.reason || undefined };
  return { decision: "approve", edited_input: decision.editedInput };
}

function verdictOf(decision: Decision): Verdict {
  if (decision.decision === "approve") return { approved: true, ...(decision.editedInput === undefined ? {} : { isEdited: true }) };
  return { approved: false, ...(decision.reason ? { reason: decision.reason } : {}) };
}
