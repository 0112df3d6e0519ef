// The model asks the reader a question: it calls one of this page's tools, and the reader answers.
import { useId, useRef, useState } from "react";

import type { Chat, ToolAnswer } from "../chat/chat";
import type { ChatMessage } from "../chat/message";
import { words } from "../i18n";
import { useRefocus } from "../refocus";
import { sent, useDraft } from "../shell/composer/useDraft";
import { type Call, nameOf, pretty, standingOf } from "./call";
import { Disclosure } from "./Disclosure";
import { Icon, Spinner } from "./icons";
import { readAnswer } from "./json";
import { endKey } from "./keys";
import { LongText } from "./LongText";
import { type QuestionInput, answerIn, questionOf } from "./questionInput";
import { useAnswer } from "./useAnswer";

type Props = { message: ChatMessage; call: Call; isLive: boolean; answer: Chat["answer"] };

export function Question({ message, call, isLive, answer }: Props) {
  const { isSending, isBusy, note, send } = useAnswer();
  const place = useRef<HTMLDivElement>(null);
  const input = questionOf(call);
  const isOpen = standingOf(call, isLive) === "asked";
  const title = input?.question ?? words.question.toolTitle(nameOf(call).tool);
  // Some providers give the calls of each run the same ids.
  const draft = `answer ${message.metadata?.runId ?? message.id} ${call.toolCallId}`;
  const give = (given: ToolAnswer) => void send(() => sent(answer(message, call.toolCallId, given), draft));
  return (
    <div ref={place}>
      {isOpen ? (
        <div className="card question" role="group" aria-label={title}>
          <h3 className="card-title">
            <Icon name="question" />
            <span className="card-question" dir="auto">
              {title}
            </span>
          </h3>
          {!input && <LongText text={pretty(call.input)} isCode />}
          {input?.rest && <Disclosure line={words.question.details}>{() => <LongText text={pretty(input.rest)} isCode />}</Disclosure>}
          <Form draft={draft} input={input} isSending={isSending} isBusy={isBusy} give={give} answered={() => place.current?.querySelector("button")} />
        </div>
      ) : (
        <Given call={call} />
      )}
      {note && (
        <p className="card-problem" role="status">
          {note}
        </p>
      )}
    </div>
  );
}

type FormProps = {
  /** The name of the stored text. */
  draft: string;
  input?: QuestionInput;
  isSending: boolean;
  isBusy: boolean;
  give: (answer: ToolAnswer) => void;
  /** Returns the element that takes the form's place after the answer. */
  answered: () => HTMLElement | null | undefined;
};

function Form({ draft, input, isSending, isBusy, give, answered }: FormProps) {
  const form = useRefocus<HTMLFormElement>(answered);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [text, setText] = useDraft(draft);
  const name = useId();
  const options = input?.options ?? [];
  const typed = text.trim();
  const isEmpty = chosen.length === 0 && typed === "";

  const choose = (option: string, isChosen: boolean) => {
    if (isBusy) return;
    if (input?.isMultiple) return setChosen(isChosen ? [...chosen, option] : chosen.filter((other) => other !== option));
    setChosen([option]);
    setText("");
  };
  const type = (value: string) => {
    setText(value);
    // If the question takes one answer, the newest counts.
    if (!input?.isMultiple && value.trim() !== "") setChosen([]);
  };
  const submit = () => {
    if (isEmpty || isBusy) return;
    if (!input?.isOurs) return give({ output: readAnswer(text) });
    const answers = [...options.filter((option) => chosen.includes(option)), ...(typed === "" ? [] : [typed])];
    give({ output: { answer: input.isMultiple ? answers : answers[0] } });
  };

  return (
    <form
      className="card-form"
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {options.length > 0 && (
        <fieldset className="choices" aria-disabled={isBusy}>
          <legend className={input?.isMultiple ? "card-hint" : "unseen"}>{input?.isMultiple ? words.question.pickSeveral : words.question.answerLabel}</legend>
          {options.map((option) => (
            <label key={option} className="choice" dir="auto">
              <input type={input?.isMultiple ? "checkbox" : "radio"} name={name} checked={chosen.includes(option)} onChange={(event) => choose(option, event.target.checked)} />
              <span>{option}</span>
            </label>
          ))}
        </fieldset>
      )}
      <label>
        <span>{options.length > 0 ? words.question.otherLabel : words.question.answerLabel}</span>
        <textarea
          className="field"
          dir="auto"
          rows={input ? 1 : 3}
          value={text}
          readOnly={isBusy}
          onChange={(event) => type(event.target.value)}
          onKeyDown={(event) => {
            // An answer that may be JSON can have several lines, so Enter does not send it.
            if (!input || endKey(event) !== "enter") return;
            event.preventDefault();
            submit();
          }}
        />
      </label>
      <div className="card-actions">
        <button type="submit" className="button" data-main disabled={isEmpty} aria-disabled={isBusy}>
          {isSending && <Spinner />}
          {words.question.answer}
        </button>
        <button type="button" className="button" data-plain aria-disabled={isBusy} onClick={() => give({ error: words.question.skipReason })}>
          {words.question.skip}
        </button>
      </div>
    </form>
  );
}

/** Shows the answer; the line opens to the question. */
function Given({ call }: { call: Call }) {
  const isAnswered = call.state === "output-available";
  const answer = isAnswered ? answerIn(call.output) : "";
  return (
    <Disclosure
      line={
        <span className="call" data-standing={isAnswered ? "completed" : "unfinished"}>
          <Icon name={isAnswered ? "check" : "skip"} />
          <span className="call-outcome">{isAnswered ? words.question.youAnswered : call.state === "output-error" ? words.question.declined : words.question.closed}</span>
          <span className="call-input" dir="auto">
            {answer.slice(0, 160)}
          </span>
        </span>
      }
    >
      {() => (
        <div className="call-detail">
          <LongText text={questionOf(call)?.question ?? pretty(call.input)} isCode={!questionOf(call)} />
          {isAnswered && <LongText text={answer} />}
        </div>
      )}
    </Disclosure>
  );
}
