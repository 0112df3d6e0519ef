// Shows the user's message, and its edit in place.
import { useEffect, useRef, useState } from "react";

import type { Unsent } from "../chat/chat";
import { areSame, filesOf } from "../chat/files";
import { type ChatMessage, textOf } from "../chat/message";
import { filesOfDraft, keepFiles } from "../files/drafts";
import { Tray } from "../files/tray";
import { words } from "../i18n";
import { later } from "../later";
import { messageField } from "../refocus";
import { CopyButton } from "./CopyButton";
import { EditMessage } from "./EditMessage";
import { draftOfEdit, forgetEdit, keepEdit, keptEdit } from "./editDrafts";
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
  /** The text with which the form opens. */
  const [form, setForm] = useState<string>();
  /** The files of the edit. They stay as long as its text. */
  const tray = useRef<Tray>(undefined);
  useEffect(() => setForm((form) => formAfter(form, text, unsent?.text)), [text, unsent?.text]);
  const editButton = useRef<HTMLButtonElement>(null);
  const close = () => {
    setForm(undefined);
    // React shows the button again only after it has removed the form.
    requestAnimationFrame(() => editButton.current?.focus());
  };
  const discard = () => {
    tray.current?.close();
    tray.current = undefined;
    forgetEdit(message.id);
    close();
  };
  if (form !== undefined) {
    const keptFiles = filesOfDraft(draftOfEdit(message.id));
    tray.current ??= Tray.with(unsent ? (unsent.files ?? []) : keptFiles.length > 0 ? keptFiles : files);
    return (
      <EditMessage
        text={form}
        tray={tray.current}
        note={form === unsent?.text ? words.message.editUnsent : words.message.editNote}
        onWrite={(typed) => keepEdit(message.id, typed === text ? "" : typed)}
        onFiles={(chosen) => keepFiles(draftOfEdit(message.id), areSame(chosen, files) ? [] : chosen)}
        onCancel={discard}
        onLeave={close}
        onSend={(changed, chosen) => {
          if (changed === text && areSame(chosen, files)) return discard();
          setForm(undefined);
          tray.current = undefined;
          messageField()?.focus({ preventScroll: true });
          onEdit(message.id, changed, chosen);
        }}
      />
    );
  }
  const kept = keptEdit(message.id, text);
  const open = () => setForm(unsent?.text ?? kept ?? text);
  return (
    <>
      {files.length > 0 && <MessageFiles files={files} />}
      {(text !== "" || files.length === 0) && (
        <div className="bubble">
          <LongText text={text} messageId={message.id} />
        </div>
      )}
      {kept !== undefined && (
        <button type="button" className="button only-idle" data-plain onClick={open}>
          {words.message.editKept}
        </button>
      )}
      <div className="actions" role="group" aria-label={words.message.actions}>
        {text !== "" && <CopyButton text={() => text} label={words.message.copy} />}
        <button type="button" ref={editButton} className="icon-button only-idle" aria-label={words.message.edit} title={words.message.edit} onClick={open}>
          <Icon name="pencil" />
        </button>
        <VersionSwitch message={message} restore={onRestore} />
        <SentAt message={message} />
      </div>
    </>
  );
}
