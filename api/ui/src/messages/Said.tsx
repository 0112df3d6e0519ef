// What the user has said, and its edit in place.
import { useEffect, useRef, useState } from "react";

import { type ChatMessage, textOf } from "../chat/message";
import { words } from "../i18n";
import { messageField } from "../refocus";
import { CopyButton } from "./CopyButton";
import { formAfter } from "./editing";
import { Icon } from "./icons";
import { endKey, onEscape } from "./keys";
import { LongText } from "./LongText";
import { SaidAt } from "./SaidAt";

type Props = {
  message: ChatMessage;
  /** An edit that could not be sent. */
  unsent?: string;
  onEdit: (id: string, text: string) => void;
};

export function Said({ message, unsent, onEdit }: Props) {
  const text = textOf(message);
  const [form, setForm] = useState<string>();
  useEffect(() => setForm((form) => formAfter(form, text, unsent)), [text, unsent]);
  const editButton = useRef<HTMLButtonElement>(null);
  const cancel = () => {
    setForm(undefined);
    // The button is there again after the form is gone.
    requestAnimationFrame(() => editButton.current?.focus());
  };
  if (form !== undefined) {
    return (
      <Edit
        text={form}
        note={form === text ? words.message.editNote : words.message.editUnsent}
        onCancel={cancel}
        onSend={(changed) => {
          if (changed === text) return cancel();
          setForm(undefined);
          messageField()?.focus({ preventScroll: true });
          onEdit(message.id, changed);
        }}
      />
    );
  }
  return (
    <>
      <div className="bubble">
        <LongText text={text} />
      </div>
      <div className="actions" role="group" aria-label={words.message.actions}>
        <SaidAt message={message} />
        <CopyButton text={() => text} label={words.message.copy} />
        <button type="button" ref={editButton} className="icon-button only-idle" aria-label={words.message.edit} title={words.message.edit} onClick={() => setForm(unsent ?? text)}>
          <Icon name="pencil" />
        </button>
      </div>
    </>
  );
}

function Edit({ text, note, onCancel, onSend }: { text: string; note: string; onCancel: () => void; onSend: (text: string) => void }) {
  const [draft, setDraft] = useState(text);
  const send = () => {
    if (draft.trim() !== "") onSend(draft.trim());
  };
  return (
    <form
      className="edit"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        className="field"
        dir="auto"
        aria-label={words.message.editLabel}
        autoFocus
        rows={Math.min(12, draft.split("\n").length + 1)}
        value={draft}
        onFocus={(event) => event.target.setSelectionRange(draft.length, draft.length)}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          onEscape(onCancel)(event);
          if (endKey(event) !== "enter") return;
          event.preventDefault();
          send();
        }}
      />
      <div className="edit-end">
        <p className="card-hint">{note}</p>
        <div className="card-actions">
          <button type="button" className="button" onClick={onCancel}>
            {words.message.cancel}
          </button>
          <button type="submit" className="button" data-main disabled={draft.trim() === ""}>
            {words.message.send}
          </button>
        </div>
      </div>
    </form>
  );
}
