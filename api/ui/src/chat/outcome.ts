// What the server knows of a run, and its stream and its history do not say: why it has failed, and how its approvals were
// answered.
import { Problem, RUN_FAILED } from "../client/problem";
import { type Run, readApprovals, readLastRun, readRun } from "../client/server";
import type { ChatMessage } from "./message";
import { hasUnknownVerdicts, type Verdicts } from "./questions";

/** Why the newest answer of a history is not whole; `undefined` if it is, or if that was somebody's wish. */
export async function failureIn(history: ChatMessage[], conversationId: string): Promise<Problem | undefined> {
  const last = history.at(-1);
  const runId = last?.metadata?.runId;
  // Only a run that has ended well, or was cancelled, has told its usage. What no run wrote, such as a card, lacks nothing.
  if (!last || (last.role === "assistant" && (!runId || last.metadata?.usage))) return undefined;
  const run = await (runId ? readRun(runId) : readLastRun(conversationId));
  return run?.status === "failed" ? problemOfRun(run) : undefined;
}

/** Why a run has failed: the stream has it in words, the run has the code too. */
export async function failureOf(runId: string): Promise<Problem | undefined> {
  const run = await readRun(runId);
  return run.error ? problemOfRun(run) : undefined;
}

/** All that is known of approvals, with what a message lacks. */
export async function verdictsWith(message: ChatMessage | undefined, known: Verdicts): Promise<Verdicts> {
  const runId = message?.metadata?.runId;
  if (!message || !runId || !hasUnknownVerdicts(message, known)) return known;
  const verdicts = new Map(known);
  for (const { id, status, reason } of await readApprovals(runId)) {
    if (status !== "pending") verdicts.set(id, { approved: status === "approved", ...(reason ? { reason } : {}) });
  }
  return verdicts;
}

function problemOfRun({ error }: Run): Problem {
  return new Problem(0, error?.code ?? RUN_FAILED, error?.message ?? "");
}
