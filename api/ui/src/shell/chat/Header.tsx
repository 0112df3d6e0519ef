// The header stands above the chat: it has the conversation's title, its agent, and a button for the list where the
// list is not beside.
import type { Data } from "../../chat/message";
import type { ServerInfo } from "../../client/server";
import { words } from "../../i18n";
import { TitleField } from "../list/ConversationItem";
import { Icon } from "../controls/icons";
import { Menu } from "../controls/Menu";
import { ContextSign } from "./ContextSign";
import { ModelSign } from "./ModelSign";
import "./Header.css";

type Props = {
  /** Undefined for a chat that has not begun. */
  title?: string;
  agent?: string;
  model?: ServerInfo["model"];
  /** How much of its budget the conversation took at the newest answer. */
  context?: Data["context"];
  /** The conversation that this one continues. */
  origin?: { title: string; open(): void };
  isListShown: boolean;
  onShowList(): void;
  onNew(): void;
  /** The actions of an existing conversation. `unsaved` is a title that the server does not have. */
  actions?: { isRenaming: boolean; unsaved?: string; beginRename(): void; rename(title: string | undefined): void; remove(): void };
};

export function Header({ title, agent, model, context, origin, isListShown, onShowList, onNew, actions }: Props) {
  return (
    <header className="head">
      {!isListShown && (
        <button type="button" className="icon-button" aria-label={words.shell.list.show} title={words.shell.list.show} onClick={onShowList}>
          <Icon name="list" />
        </button>
      )}
      <div className="head-name">
        {actions?.isRenaming ? (
          <TitleField title={actions.unsaved ?? title ?? ""} onDone={actions.rename} />
        ) : (
          <>
            <h1 dir="auto" className={title === undefined ? "unseen" : undefined} title={title} onDoubleClick={actions?.beginRename}>
              {title ?? words.shell.newChat}
            </h1>
            {agent && (
              <span className="head-agent" dir="auto">
                {agent}
              </span>
            )}
            {origin && (
              <button type="button" className="head-origin" title={words.shell.forkOf(origin.title)} onClick={origin.open}>
                {words.shell.forkOf(origin.title)}
              </button>
            )}
            {model && <ModelSign model={model} />}
            {context && <ContextSign context={context} />}
          </>
        )}
      </div>
      {actions && (
        <Menu
          label={words.shell.more}
          items={[
            { label: words.shell.list.rename, icon: "rename", run: actions.beginRename },
            { label: words.shell.list.delete, icon: "delete", isDanger: true, run: actions.remove },
          ]}
        />
      )}
      {!isListShown && title !== undefined && (
        <button type="button" className="icon-button" aria-label={words.shell.newChat} title={words.shell.newChat} onClick={onNew}>
          <Icon name="add" />
        </button>
      )}
    </header>
  );
}
