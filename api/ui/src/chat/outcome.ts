// This file reads how an answer has ended. It also reads a fact that neither stream nor history has: the verdicts of
// approvals.
import { Problem } from "holdfast-client/problem";

import { RUN_FAILED } from "../client/refusals";
import { readApprovals } from "../client/server";
import type { ChatMessage } from "./message";
import { hasUnknownVerdicts, type Verdicts } from "./questions";

/** Returns why an answer is incomplete, or `undefined` if it is complete or a reader cancelled it. */
export function failureOf(message: ChatMessage | undefined): Problem | undefined {
  const { status, error } = message?.metadata ?? {};
  return status === "failed" ? new Problem(0, error?.code ?? RUN_FAILED, error?.message ?? "") : undefined;
}

/** Returns all known verdicts of approvals, with the ones that a message lacks. */
export async function verdictsWith(message: ChatMessage | undefined, known: Verdicts): Promise<Verdicts> {
  const runId = message?.metadata?.runId;
  if (!message || !runId || !hasUnknownVerdicts(message, known)) return known;
  const verdicts = new Map(known);
  for (const { id, status, reason, edited_input } of await readApprovals(runId)) {
    if (status !== "pending") verdicts.set(id, { approved: status === "approved", ...(reason ? { reason } : {}), ...(edited_input ? { isEdited: true } : {}) });
  }
  return verdicts;
}
