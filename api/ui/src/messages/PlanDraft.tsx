// A plan that waits for the reader's approval: the reader can change, remove and approve its steps.
import { useState } from "react";

import { words } from "../i18n";
import { type DraftStep, edited } from "./draftSteps";
import { Icon } from "./icons";
import { onEscape } from "./keys";
import { LongText } from "./LongText";
import { visible } from "./visible";

export function DraftSteps({ steps, notes }: { steps: readonly DraftStep[]; notes?: string }) {
  return (
    <>
      <ol className="plan-steps">
        {steps.map((step) => (
          <li key={step.number} data-status="pending">
            <span className="plan-mark" />
            <LongText text={visible(step.description)} />
          </li>
        ))}
      </ol>
      {notes && (
        <p className="card-note" dir="auto">
          {words.plan.notes(notes)}
        </p>
      )}
    </>
  );
}

type EditorProps = {
  steps: readonly DraftStep[];
  /** Whether the editor is open from the start. */
  isReopened: boolean;
  isBusy: boolean;
  onBack: () => void;
  /** Receives the steps as text, and in the form that `stepsIn` reads. */
  onDraft: (text: string, kept: string) => void;
  onApprove: (input: unknown) => void;
};

export function DraftEditor({ steps, isReopened, isBusy, onBack, onDraft, onApprove }: EditorProps) {
  const [now, setNow] = useState(steps);
  const change = (next: readonly DraftStep[]) => {
    setNow(next);
    onDraft(next.map(({ description }) => description).join("\n"), JSON.stringify(next));
  };
  const write = (number: number, description: string) => change(now.map((step) => (step.number === number ? { ...step, description } : step)));
  const isComplete = now.length > 0 && now.every(({ description }) => description.trim() !== "");
  return (
    <form
      className="card-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isComplete) onApprove(edited(now));
      }}
    >
      <ol className="plan-steps">
        {now.map((step, index) => (
          <li key={step.number}>
            <textarea className="field" dir="auto" rows={2} autoFocus={index === 0 && !isReopened} value={step.description} aria-label={words.plan.step(index + 1)} onChange={(event) => write(step.number, event.target.value)} onKeyDown={onEscape(onBack)} />
            <button type="button" className="icon-button" aria-label={words.plan.remove(index + 1)} title={words.plan.remove(index + 1)} onClick={() => change(now.filter(({ number }) => number !== step.number))}>
              <Icon name="cross" />
            </button>
          </li>
        ))}
      </ol>
      <div className="card-actions">
        <button type="submit" className="button" data-main disabled={!isComplete} aria-disabled={isBusy}>
          {words.approval.approveEdited}
        </button>
        <button type="button" className="button" aria-disabled={isBusy} onClick={onBack}>
          {words.approval.back}
        </button>
      </div>
    </form>
  );
}
