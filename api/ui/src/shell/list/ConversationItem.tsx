// One conversation of the list is a link, so that it opens in another tab as links do. It has a menu, and a field for
// its title.
import { useEffect, useRef } from "react";

import type { Conversation } from "../../client/server";
import { words } from "../../i18n";
import { isComposing } from "../../isComposing";
import { linkOf } from "../address";
import { Menu } from "../controls/Menu";
import { placeOf } from "./listed";
import { Marked } from "./Marked";
import { opening } from "./opening";

type Props = {
  conversation: Conversation;
  isCurrent: boolean;
  /** Whether it waits for the reader. */
  isWaiting: boolean;
  /** The name that a program has given it. */
  session?: string;
  isRenaming: boolean;
  /** The title that the reader has typed and the server does not have. */
  unsaved?: string;
  /** The text of the search that has found it. */
  query: string;
  onOpen(id: string, messageId?: string, words?: string): void;
  onBeginRename(): void;
  /** Without an argument, the title stays unchanged. */
  onRename(title: string | undefined): void;
  onDelete(id: string, title: string): void;
};

export function ConversationItem({ conversation, isCurrent, isWaiting, session, isRenaming, unsaved, query, onOpen, onBeginRename, onRename, onDelete }: Props) {
  const { id, live_run_id, found } = conversation;
  const place = placeOf(conversation);
  const live = isWaiting ? words.shell.list.needsYou : words.shell.list.live;
  const title = conversation.title ?? session ?? words.shell.untitled;
  const isLive = live_run_id !== null || isWaiting;
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isCurrent) element.current?.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);

  const link = opening(() => onOpen(id, place, place && query));

  const remove = () => {
    // The focus moves to the item that takes this one's place.
    const other = element.current?.nextElementSibling ?? element.current?.previousElementSibling;
    other?.querySelector("a")?.focus();
    onDelete(id, title);
  };

  if (isRenaming) {
    return (
      <li ref={element} className="item">
        <TitleField title={unsaved ?? conversation.title ?? ""} onDone={onRename} />
      </li>
    );
  }
  return (
    <li ref={element} className="item" data-current={isCurrent || undefined}>
      <a href={linkOf(id, place)} aria-current={isCurrent ? "page" : undefined} title={title} {...link}>
        <span className="item-text">
          <span className="item-title" dir="auto">
            <Marked text={title} query={query} />
          </span>
          {found && (
            <span className="item-found" dir="auto">
              <Marked text={found.excerpt} query={query} />
            </span>
          )}
        </span>
        {session && session !== title && (
          <span className="item-session" dir="auto" title={words.shell.list.session(session)}>
            {session}
          </span>
        )}
        {isLive && <span className="item-live" data-waiting={isWaiting || undefined} role="img" aria-label={live} title={live} />}
      </a>
      <Menu
        label={words.shell.list.actions(title)}
        items={[
          { label: words.shell.list.rename, icon: "rename", run: onBeginRename },
          { label: words.shell.list.delete, icon: "delete", isDanger: true, run: remove },
        ]}
      />
    </li>
  );
}

/** Enter and leaving the field keep the new title; Esc keeps the old one. */
export function TitleField({ title, onDone }: { title: string; onDone(title: string | undefined): void }) {
  const field = useRef<HTMLInputElement>(null);
  /** The field's removal also blurs it. */
  const isDone = useRef(false);
  const done = (value: string | undefined) => {
    if (isDone.current) return;
    isDone.current = true;
    onDone(value);
  };
  /** Gives the focus to the element that replaces the field, after its render. */
  const giveBack = () => {
    const home = field.current?.closest(".item, .head");
    requestAnimationFrame(() => home?.querySelector<HTMLElement>("a, .menu-button")?.focus());
  };
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);

  return (
    <input
      ref={field}
      className="field title-field"
      dir="auto"
      defaultValue={title}
      maxLength={200}
      aria-label={words.shell.list.title}
      placeholder={words.shell.untitled}
      onBlur={(event) => done(event.target.value)}
      onKeyDown={(event) => {
        if (isComposing(event) || (event.key !== "Enter" && event.key !== "Escape")) return;
        // Esc must not also close the drawer, or stop the answer.
        event.preventDefault();
        event.stopPropagation();
        done(event.key === "Enter" ? event.currentTarget.value : undefined);
        giveBack();
      }}
    />
  );
}
