// The message that answers the questions of a run.

/** Returns the answers, each after its question where there are several; an empty text if there is no answer. */
export function replyTo(questions: readonly string[], answers: readonly string[]): string {
  const given = questions.flatMap((question, index) => {
    const answer = answers[index]?.trim() ?? "";
    if (answer === "") return [];
    return [questions.length === 1 ? answer : `${question}\n${answer}`];
  });
  return given.join("\n\n");
}
