// How an answer has ended, and what the server knows that its stream and its history do not say: how approvals were answered.
import { Problem, RUN_FAILED } from "../client/problem";
import { readApprovals } from "../client/server";
import type { ChatMessage } from "./message";
import { hasUnknownVerdicts, type Verdicts } from "./questions";

/** Why an answer is not whole; `undefined` if it is, or if that was somebody's wish. */
export function failureOf(message: ChatMessage | undefined): Problem | undefined {
  const { status, error } = message?.metadata ?? {};
  return status === "failed" ? new Problem(0, error?.code ?? RUN_FAILED, error?.message ?? "") : undefined;
}

/** All that is known of approvals, with what a message lacks. */
export async function verdictsWith(message: ChatMessage | undefined, known: Verdicts): Promise<Verdicts> {
  const runId = message?.metadata?.runId;
  if (!message || !runId || !hasUnknownVerdicts(message, known)) return known;
  const verdicts = new Map(known);
  for (const { id, status, reason, edited_input } of await readApprovals(runId)) {
    if (status !== "pending") verdicts.set(id, { approved: status === "approved", ...(reason ? { reason } : {}), ...(edited_input ? { isEdited: true } : {}) });
  }
  return verdicts;
}
