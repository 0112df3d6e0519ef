// Edits the input of a call as JSON, before the reader approves it.
import { useId, useState } from "react";

import { words } from "../i18n";
import { pretty } from "./call";
import { readInput } from "./json";
import { onEscape } from "./keys";
import { visible } from "./visible";

type Props = {
  input: unknown;
  /** The text that the reader typed before they left the editor. */
  kept?: string;
  /** Whether the editor is open from the start. */
  isReopened: boolean;
  isBusy: boolean;
  onBack: () => void;
  /** Receives the edited input; undefined if it equals the original. */
  onDraft: (text: string | undefined) => void;
  onApprove: (input: unknown) => void;
};

export function InputEditor({ input, kept, isReopened, isBusy, onBack, onDraft, onApprove }: Props) {
  const [before] = useState(() => visible(pretty(input)));
  const [text, setText] = useState(kept ?? before);
  const write = (text: string) => {
    setText(text);
    onDraft(text === before ? undefined : text);
  };
  const read = readInput(text);
  const id = useId();
  return (
    <form
      className="card-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (read.ok) onApprove(read.value);
      }}
    >
      <label>
        <span>{words.approval.inputLabel}</span>
        <textarea
          className="field json"
          dir="ltr"
          spellCheck={false}
          autoFocus={!isReopened}
          rows={Math.min(16, Math.max(4, text.split("\n").length + 1))}
          value={text}
          aria-invalid={!read.ok}
          aria-describedby={read.ok ? undefined : id}
          onChange={(event) => write(event.target.value)}
          onKeyDown={onEscape(onBack)}
        />
      </label>
      {!read.ok && (
        <p className="card-problem" id={id}>
          {read.reason === "not JSON" ? words.approval.notJson : words.approval.notObject}
        </p>
      )}
      <div className="card-actions">
        <button type="submit" className="button" data-main disabled={!read.ok} aria-disabled={isBusy}>
          {words.approval.approveEdited}
        </button>
        <button type="button" className="button" aria-disabled={isBusy} onClick={onBack}>
          {words.approval.back}
        </button>
      </div>
    </form>
  );
}
