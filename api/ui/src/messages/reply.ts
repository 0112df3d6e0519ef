// The questions of a run, and the message that answers the questions of a run.

/** Returns the answers, each after its question where there are several; an empty text if there is no answer. */
export function replyTo(questions: readonly string[], answers: readonly string[]): string {
  const given = questions.flatMap((question, index) => {
    const answer = answers[index]?.trim() ?? "";
    if (answer === "") return [];
    return [questions.length === 1 ? answer : `${question}\n${answer}`];
  });
  return given.join("\n\n");
}

/** Returns the stored answers to so many questions. */
export function answersIn(kept: string, count: number): string[] {
  const stored = readJson(kept);
  return Array.from({ length: count }, (_, index) => (Array.isArray(stored) && typeof stored[index] === "string" ? stored[index] : ""));
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the text without the questions at its end, which fields below it repeat. */
export function withoutQuestions(text: string, questions: readonly string[]): string {
  const lines = text.trimEnd().split("\n");
  const asked = new Set(questions);
  while (lines.length > 0 && (lines.at(-1)!.trim() === "" || asked.has(lines.at(-1)!.trim().replace(/^\d+\. /, "")))) lines.pop();
  return lines.join("\n");
}
