// The form in which a user edits a message: its text and its files.
import { type ClipboardEvent, useEffect, useRef, useState } from "react";

import type { FileRef } from "../client/files";
import { AddFiles } from "../files/AddFiles";
import { obstacleOf, readyOf, type Tray } from "../files/tray";
import { UploadAnnouncer } from "../files/UploadAnnouncer";
import { addTo, useItems } from "../files/useTray";
import { bringsOnlyFiles, contentOf } from "../files/useTransfers";
import { words } from "../i18n";
import { later } from "../later";
import { showToast } from "../shell/controls/toasts";
import { endKey, onEscape } from "./keys";

const TrayFiles = later(async () => (await import("../files/TrayFiles")).TrayFiles);

type Props = {
  text: string;
  tray: Tray;
  note: string;
  onWrite: (text: string) => void;
  onFiles: (files: FileRef[]) => void;
  onCancel: () => void;
  /** The writer leaves the form, and may return to the typed text. */
  onLeave: () => void;
  onSend: (text: string, files: FileRef[]) => void;
};

export function EditMessage({ text, tray, note, onWrite, onFiles, onCancel, onLeave, onSend }: Props) {
  const [draft, setDraft] = useState(text);
  const items = useItems(tray);
  const field = useRef<HTMLTextAreaElement>(null);
  const obstacle = obstacleOf(items);
  useEffect(() => onFiles(readyOf(items)), [items]);
  const write = (text: string) => {
    setDraft(text);
    onWrite(text);
  };
  const isSendable = (draft.trim() !== "" || items.length > 0) && !obstacle;
  const send = () => {
    if (isSendable) onSend(draft.trim(), tray.files);
  };
  // The message field would take files that are pasted elsewhere.
  const onPaste = (event: ClipboardEvent) => {
    if (!bringsOnlyFiles(event.clipboardData)) return;
    event.preventDefault();
    event.stopPropagation();
    const { files, hasFolder } = contentOf(event.clipboardData);
    if (hasFolder) showToast(words.files.noFolder);
    addTo(tray, files);
  };
  return (
    <form
      className="edit"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {items.length > 0 && <TrayFiles tray={tray} items={items} place={() => field.current} />}
      <textarea
        ref={field}
        className="field"
        dir="auto"
        aria-label={words.message.editLabel}
        autoFocus
        rows={Math.min(12, draft.split("\n").length + 1)}
        value={draft}
        onFocus={(event) => event.target.setSelectionRange(draft.length, draft.length)}
        onChange={(event) => write(event.target.value)}
        onPaste={onPaste}
        onKeyDown={(event) => {
          onEscape(onLeave)(event);
          if (endKey(event) !== "enter") return;
          event.preventDefault();
          send();
        }}
      />
      <UploadAnnouncer items={items} />
      <div className="edit-end">
        <p className="card-hint">{note}</p>
        <div className="card-actions">
          <AddFiles onFiles={(files) => addTo(tray, files)} />
          <button type="button" className="button" onClick={onCancel}>
            {words.message.cancel}
          </button>
          <button type="submit" className="button" data-main disabled={!isSendable}>
            {obstacle === "uploading" ? words.files.wait : words.message.send}
          </button>
        </div>
      </div>
    </form>
  );
}
