// What a call of one of this page's tools asks the reader.
import { ASK_USER } from "../chat/tools";
import { type Call, nameOf } from "./call";

export type Question = { question: string; options: string[]; isMultiple: boolean };

/** Undefined for other tools, and for an input that is no question. */
export function questionOf(call: Call): Question | undefined {
  if (nameOf(call).tool !== ASK_USER || typeof call.input !== "object" || call.input === null) return undefined;
  const { question, options, multiple } = call.input as Record<string, unknown>;
  if (typeof question !== "string") return undefined;
  const choices = Array.isArray(options) ? options.filter((option) => typeof option === "string" && option !== "") : [];
  return { question, options: [...new Set<string>(choices)], isMultiple: multiple === true };
}

/** What was answered, in words. */
export function answerIn(output: unknown): string {
  if (typeof output === "string") return output;
  const answer = typeof output === "object" && output !== null && "answer" in output ? output.answer : output;
  if (Array.isArray(answer)) return answer.map(answerIn).join(", ");
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}
