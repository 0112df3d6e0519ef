// Shows the user's message, and its edit in place.
import { useEffect, useRef, useState } from "react";

import { type ChatMessage, textOf } from "../chat/message";
import { words } from "../i18n";
import { messageField } from "../refocus";
import { CopyButton } from "./CopyButton";
import { formAfter } from "./editing";
import { Icon } from "./icons";
import { endKey, onEscape } from "./keys";
import { LongText } from "./LongText";
import { SentAt } from "./SentAt";
import type { Actions } from "./useActions";
import { VersionSwitch } from "./VersionSwitch";

type Props = {
  message: ChatMessage;
  /** An edit that the page failed to send. */
  unsent?: string;
  onEdit: (id: string, text: string) => void;
  onRestore: Actions["restore"];
};

export function UserMessage({ message, unsent, onEdit, onRestore }: Props) {
  const text = textOf(message);
  const [form, setForm] = useState<string>();
  /** The text of an edit that Esc has closed. */
  const [kept, setKept] = useState<string>();
  useEffect(() => setForm((form) => formAfter(form, text, unsent)), [text, unsent]);
  const editButton = useRef<HTMLButtonElement>(null);
  const close = (typed?: string) => {
    setKept(typed);
    setForm(undefined);
    // React shows the button again only after it has removed the form.
    requestAnimationFrame(() => editButton.current?.focus());
  };
  if (form !== undefined) {
    return (
      <Edit
        text={form}
        note={form === unsent ? words.message.editUnsent : words.message.editNote}
        onCancel={() => close()}
        onLeave={close}
        onSend={(changed) => {
          if (changed === text) return close();
          setKept(undefined);
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
        <CopyButton text={() => text} label={words.message.copy} />
        <button type="button" ref={editButton} className="icon-button only-idle" aria-label={words.message.edit} title={words.message.edit} onClick={() => setForm(unsent ?? kept ?? text)}>
          <Icon name="pencil" />
        </button>
        <VersionSwitch message={message} restore={onRestore} />
        <SentAt message={message} />
      </div>
    </>
  );
}

type EditProps = {
  text: string;
  note: string;
  onCancel: () => void;
  /** The writer leaves the form, and may return to the typed text. */
  onLeave: (typed: string) => void;
  onSend: (text: string) => void;
};

function Edit({ text, note, onCancel, onLeave, onSend }: EditProps) {
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
          onEscape(() => onLeave(draft))(event);
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
