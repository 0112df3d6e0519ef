// Shows the user's message, and its edit in place.
import { useEffect, useRef, useState } from "react";

import type { Unsent } from "../chat/chat";
import { areSame, filesOf } from "../chat/files";
import { type ChatMessage, textOf } from "../chat/message";
import { Tray } from "../files/tray";
import { words } from "../i18n";
import { later } from "../later";
import { messageField } from "../refocus";
import { CopyButton } from "./CopyButton";
import { EditMessage } from "./EditMessage";
import { formAfter } from "./editing";
import { Icon } from "./icons";
import { LongText } from "./LongText";
import { SentAt } from "./SentAt";
import type { Actions } from "./useActions";
import { VersionSwitch } from "./VersionSwitch";

// Most messages have no files.
const MessageFiles = later(async () => (await import("../files/MessageFiles")).MessageFiles);

type Props = {
  message: ChatMessage;
  /** An edit that the page failed to send. */
  unsent?: Unsent;
  onEdit: Actions["edit"];
  onRestore: Actions["restore"];
};

export function UserMessage({ message, unsent, onEdit, onRestore }: Props) {
  const text = textOf(message);
  const files = filesOf(message);
  const [form, setForm] = useState<string>();
  /** The text of an edit that Esc has closed. */
  const [kept, setKept] = useState<string>();
  /** The files of the edit. They stay as long as its text. */
  const tray = useRef<Tray>(undefined);
  useEffect(() => setForm((form) => formAfter(form, text, unsent?.text)), [text, unsent?.text]);
  const editButton = useRef<HTMLButtonElement>(null);
  const close = (typed?: string) => {
    setKept(typed);
    setForm(undefined);
    // React shows the button again only after it has removed the form.
    requestAnimationFrame(() => editButton.current?.focus());
  };
  const discard = () => {
    tray.current?.close();
    tray.current = undefined;
    close();
  };
  if (form !== undefined) {
    tray.current ??= Tray.with(unsent ? (unsent.files ?? []) : files);
    return (
      <EditMessage
        text={form}
        tray={tray.current}
        note={form === unsent?.text ? words.message.editUnsent : words.message.editNote}
        onCancel={discard}
        onLeave={close}
        onSend={(changed, chosen) => {
          if (changed === text && areSame(chosen, files)) return discard();
          setKept(undefined);
          setForm(undefined);
          tray.current = undefined;
          messageField()?.focus({ preventScroll: true });
          onEdit(message.id, changed, chosen);
        }}
      />
    );
  }
  return (
    <>
      {files.length > 0 && <MessageFiles files={files} />}
      {(text !== "" || files.length === 0) && (
        <div className="bubble">
          <LongText text={text} />
        </div>
      )}
      <div className="actions" role="group" aria-label={words.message.actions}>
        {text !== "" && <CopyButton text={() => text} label={words.message.copy} />}
        <button type="button" ref={editButton} className="icon-button only-idle" aria-label={words.message.edit} title={words.message.edit} onClick={() => setForm(unsent?.text ?? kept ?? text)}>
          <Icon name="pencil" />
        </button>
        <VersionSwitch message={message} restore={onRestore} />
        <SentAt message={message} />
      </div>
    </>
  );
}
