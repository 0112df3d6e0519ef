// The questions with which a run has ended, below the newest answer. The reader's next message answers them.
import { words } from "../i18n";
import { messageField, useRefocus } from "../refocus";
import { useDraft } from "../shell/composer/useDraft";
import { endKey } from "./keys";
import { answersIn, replyTo } from "./reply";
import { visible } from "./visible";

type Props = {
  /** The name of the stored answers. */
  draft: string;
  questions: readonly string[];
  /** Sends the reader's next message. */
  say: (text: string) => void;
};

export function AskedQuestions({ draft, questions, say }: Props) {
  const form = useRefocus<HTMLFormElement>(messageField);
  const [kept, keep] = useDraft(draft);
  const answers = answersIn(kept, questions.length);
  const reply = replyTo(questions, answers);
  const send = () => {
    if (reply === "") return;
    keep("");
    say(reply);
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
              onChange={(event) => keep(JSON.stringify(answers.with(index, event.target.value)))}
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
