// The questions with which a run has ended, below the newest answer. The reader's next message answers them.
import { useState } from "react";

import { words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { endKey } from "./keys";
import { replyTo } from "./reply";
import { visible } from "./visible";

type Props = {
  questions: readonly string[];
  /** Sends the reader's next message. */
  say: (text: string) => void;
};

export function AskedQuestions({ questions, say }: Props) {
  const form = useRefocus<HTMLFormElement>(messageField);
  const [answers, setAnswers] = useState<readonly string[]>(() => questions.map(() => ""));
  const reply = replyTo(questions, answers);
  const send = () => {
    if (reply !== "") say(reply);
  };
  return (
    <div className="card" role="group" aria-label={words.question.asked}>
      <form
        className="card-form"
        ref={form}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        {questions.map((question, index) => (
          <label key={`${index} ${question}`}>
            <span dir="auto">{visible(question)}</span>
            <textarea
              className="field"
              dir="auto"
              rows={1}
              value={answers[index]}
              onChange={(event) => setAnswers(answers.with(index, event.target.value))}
              onKeyDown={(event) => {
                if (endKey(event) !== "enter") return;
                event.preventDefault();
                send();
              }}
            />
          </label>
        ))}
        <div className="card-actions">
          <button type="submit" className="button" data-main disabled={reply === ""}>
            {words.question.answer}
          </button>
          <button type="button" className="button" data-plain onClick={() => say(words.question.youDecideText)}>
            {words.question.youDecide}
          </button>
        </div>
      </form>
    </div>
  );
}
