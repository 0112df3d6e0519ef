// This file reads the question to the reader from a call of a front end's tool.
import { ASK_USER } from "../chat/tools";
import { type Call, nameOf } from "./call";

export type QuestionInput = {
  question: string;
  options: string[];
  isMultiple: boolean;
  /** The other fields of the input; undefined if it has none. */
  rest?: Record<string, unknown>;
  /**
   * Whether the call is of this page's own tool, whose answers have a fixed form. Other tools receive the typed text.
   */
  isOurs: boolean;
};

/** Returns undefined for an input that is no question. */
export function questionOf(call: Call): QuestionInput | undefined {
  if (typeof call.input !== "object" || call.input === null) return undefined;
  const { question, ...others } = call.input as Record<string, unknown>;
  if (typeof question !== "string" || question.trim() === "") return undefined;
  if (nameOf(call).tool !== ASK_USER) return { question, options: [], isMultiple: false, rest: Object.keys(others).length > 0 ? others : undefined, isOurs: false };
  const { options, multiple } = others;
  const choices = Array.isArray(options) ? options.filter((option) => typeof option === "string" && option !== "") : [];
  return { question, options: [...new Set<string>(choices)], isMultiple: multiple === true, isOurs: true };
}

/** Returns an answer in words. */
export function answerIn(output: unknown): string {
  if (typeof output === "string") return output;
  const answer = typeof output === "object" && output !== null && "answer" in output ? output.answer : output;
  if (Array.isArray(answer)) return answer.map(answerIn).join(", ");
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}
