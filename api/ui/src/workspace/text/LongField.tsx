// A long text in Markdown: the body of a document or an output, the description of everything else. The reader reads it,
// and edits it in place.
import { useEffect, useRef } from "react";

import { isTooLong } from "../../client/refusals";
import type { Entity, EntityKind } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { isComposing } from "../../isComposing";
import { Markdown } from "../../messages/markdown/Markdown";
import { textField } from "../kinds";
import { Conflict } from "./Conflict";
import { useText } from "./useText";
import "./LongField.css";

type Props = {
  kind: EntityKind;
  entity: Entity;
  /** Whether the field begins as a field to write in. */
  isOpen?: boolean;
  onClosed?: () => void;
};

export function LongField({ kind, entity, isOpen = false, onClosed }: Props) {
  const [editing, actions] = useText(kind, entity, isOpen);
  const text = entity[textField(kind)] ?? "";
  const edit = useRef<HTMLButtonElement>(null);
  const wasWriting = useRef(editing.at !== "reading");
  useEffect(() => {
    const isReading = editing.at === "reading";
    if (wasWriting.current && isReading) {
      onClosed?.();
      edit.current?.focus();
    }
    wasWriting.current = !isReading;
  }, [editing.at, onClosed]);

  if (editing.at === "conflict") return <Conflict editing={editing} field={textField(kind)} actions={actions} />;
  if (editing.at === "writing") {
    const { unsaved, isKept, isBusy, problem } = editing;
    return (
      <form
        className="long-form"
        onSubmit={(event) => {
          event.preventDefault();
          actions.save();
        }}
      >
        {isKept && <p className="workspace-note">{texts.text.kept}</p>}
        <textarea
          className="field"
          dir="auto"
          autoFocus={!isKept}
          aria-label={texts.text.label}
          value={unsaved.text}
          onChange={(event) => actions.write(event.target.value)}
          onKeyDown={(event) => {
            if (isComposing(event) || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            actions.save();
          }}
        />
        <div className="long-actions">
          <button type="submit" className="button" data-main="" aria-disabled={isBusy}>
            {texts.text.save}
          </button>
          <button type="button" className="button" onClick={actions.cancel}>
            {texts.text.cancel}
          </button>
          <p role="alert">{problem && (isTooLong(problem) ? texts.text.tooLong : problem.code === "invalid_entity" ? problem.message : texts.text.notSaved)}</p>
        </div>
      </form>
    );
  }
  return (
    <div className="long-text">
      {text.trim() !== "" ? <Markdown text={text} isDocument /> : <p className="long-nothing">{texts.entity.noText}</p>}
      <button ref={edit} type="button" className="button" onClick={actions.begin}>
        {text.trim() !== "" ? texts.entity.edit : texts.entity.write}
      </button>
    </div>
  );
}
