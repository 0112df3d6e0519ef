// The page shows this in place of a chat: the address leads nowhere, or to a conversation that does not exist or is
// being deleted. The reader takes the text that was written there along to a new chat.
import { type ReactNode, useEffect } from "react";

import { filesOfDraft, moveFiles } from "../files/drafts";
import { words } from "../i18n";
import { pageTitle } from "./chat/title";
import { NEW_CHAT, tabDrafts } from "./composer/drafts";
import { Mark } from "./controls/icons";
import "./NoChat.css";

type Props = {
  /** The conversation that does not exist; undefined for an unknown address. */
  gone: string | undefined;
  /** Undoes the deletion of the conversation, as long as it waits. */
  undo?: () => void;
  /** The number of conversations that wait for the reader. */
  waiting: number;
  header: ReactNode;
  onNew(): void;
};

export function NoChat({ gone, undo, waiting, header, onNew }: Props) {
  useEffect(() => {
    document.title = pageTitle(undefined, false, waiting);
  }, [waiting]);
  const { title, text = undefined }: { title: string; text?: string } = gone === undefined ? words.shell.lost : undo ? words.shell.removed : words.shell.missing;
  const draft = gone === undefined || undo ? "" : [...filesOfDraft(gone).map(({ name }) => name), tabDrafts.read(gone)].join("\n").trim();
  const takeAlong = () => {
    tabDrafts.move(gone!, NEW_CHAT);
    moveFiles(gone!, NEW_CHAT);
    onNew();
  };
  return (
    <main className="chat" id="chat" tabIndex={-1}>
      {header}
      <div className="nowhere">
        <Mark />
        <h2>{title}</h2>
        {text && <p>{text}</p>}
        {draft && (
          <>
            <p>{words.shell.kept}</p>
            <blockquote dir="auto">{draft}</blockquote>
          </>
        )}
        <div className="nowhere-actions">
          {undo && (
            <button type="button" className="button" data-main="" onClick={undo}>
              {words.shell.list.undo}
            </button>
          )}
          <button type="button" className="button" data-main={undo ? undefined : ""} onClick={draft ? takeAlong : onNew}>
            {draft ? words.shell.takeAlong : words.shell.newChat}
          </button>
        </div>
      </div>
    </main>
  );
}
