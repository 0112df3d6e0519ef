// The list has the conversations by day, the search above and the account below. It stands beside the chat, or in a
// drawer on a small page.
import { useEffect, useRef, useState, type ReactNode } from "react";

import type { Conversation } from "../../client/server";
import { locale, words } from "../../i18n";
import { isComposing } from "../../isComposing";
import { MEMORIES_PATH } from "../../memories/address";
import { follow } from "../../visit";
import { COLLECTIONS_PATH } from "../../knowledge/address";
import { PROJECTS_PATH } from "../../workspace/address";
import { ConversationItem } from "./ConversationItem";
import { grouped, nameOf, type Group } from "./days";
import { Icon, Mark } from "../controls/icons";
import type { Open } from "../useOpen";
import { moveFocus } from "./keys";
import { activityOf, placeOf } from "./listed";
import type { Conversations } from "./useConversations";
import type { Deleted } from "./useDeletion";
import { useConversationsOf } from "./useWaiting";
import "./ConversationList.css";

type Props = {
  conversations: Conversations;
  /** The ids that the list must hide. */
  deleted: Deleted;
  current: string | undefined;
  /** The ids of conversations that wait for the reader. */
  waiting: ReadonlySet<string>;
  sessions: ReadonlyMap<string, string>;
  /** The open part of the page. */
  at: Open["at"];
  /** Without it, the list shows no briefings. */
  onBriefings?: () => void;
  onOpen(id: string, messageId?: string, words?: string): void;
  onNew(): void;
  onHide(): void;
  onDelete(id: string, title: string): void;
  /** The elements below the list. */
  children: ReactNode;
};

export function ConversationList({ conversations, deleted, current, waiting, sessions, at, onBriefings, onOpen, onNew, onHide, onDelete, children }: Props) {
  const [renaming, setRenaming] = useState<string>();
  const [isFirst, setIsFirst] = useState(false);
  const areFirst = isFirst && waiting.size > 0;
  const first = useConversationsOf(waiting, conversations.items, areFirst).filter(({ id }) => areFirst && !deleted.has(id));
  const shown = conversations.items.filter((item) => !deleted.has(item.id) && !first.includes(item));
  const groups = grouped(shown, (item) => new Date(activityOf(item)), new Date()).map(({ group, items }) => ({ key: nameOf(group), name: headingOf(group), items }));
  const all = first.length > 0 ? [{ key: "waiting", name: words.shell.list.needYou, items: first }, ...groups] : groups;
  const scroller = useRef<HTMLDivElement>(null);
  // The effect runs after that of the open conversation, which brings itself into sight.
  useEffect(() => {
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [conversations.found]);
  return (
    <nav className="list" aria-label={words.shell.list.name} onKeyDown={moveFocus}>
      <div className="list-head">
        <span className="brand">
          <Mark />
          Holdfast
        </span>
        <button type="button" className="icon-button" aria-label={words.shell.list.hide} title={words.shell.list.hide} onClick={onHide}>
          <Icon name="list" />
        </button>
      </div>
      <button type="button" className="list-new" onClick={onNew}>
        <Icon name="add" />
        {words.shell.newChat}
      </button>
      <Search conversations={conversations} first={all[0]?.items[0]} onOpen={onOpen} />
      <PartLink to={PROJECTS_PATH} icon="project" isOpen={at === "workspace"} name={words.shell.list.projects} />
      <PartLink to={COLLECTIONS_PATH} icon="knowledge" isOpen={at === "knowledge"} name={words.shell.list.knowledge} />
      <PartLink to={MEMORIES_PATH} icon="memory" isOpen={at === "memories"} name={words.shell.list.memories} />
      {onBriefings && (
        <button type="button" className="list-briefings" onClick={onBriefings}>
          <Icon name="briefing" />
          {words.briefing.list}
        </button>
      )}
      {waiting.size > 0 && (
        <button type="button" className="list-waiting" aria-pressed={areFirst} title={words.shell.list.waitingFirst} onClick={() => setIsFirst(!isFirst)}>
          <span className="item-live" data-waiting />
          {words.shell.list.waiting(waiting.size)}
        </button>
      )}
      <div className="list-scroll" tabIndex={-1} ref={scroller}>
        {all.map(({ key, name, items }) => (
          <section key={key} aria-labelledby={`group-${key}`}>
            <h2 id={`group-${key}`}>{name}</h2>
            <ul role="list">
              {items.map((item) => (
                <ConversationItem
                  key={item.id}
                  conversation={item}
                  isCurrent={item.id === current}
                  isWaiting={waiting.has(item.id)}
                  session={sessions.get(item.id)}
                  isRenaming={item.id === renaming}
                  unsaved={conversations.unsaved.get(item.id)}
                  query={conversations.found}
                  onOpen={onOpen}
                  onRename={(title) => {
                    setRenaming(undefined);
                    if (title !== undefined) void conversations.rename(item, title);
                  }}
                  onBeginRename={() => setRenaming(item.id)}
                  onDelete={onDelete}
                />
              ))}
            </ul>
          </section>
        ))}
        <Rest conversations={conversations} isEmpty={shown.length + first.length === 0} />
      </div>
      <div className="list-foot">{children}</div>
    </nav>
  );
}

/** Leads to another part of the page. */
function PartLink({ to, icon, isOpen, name }: { to: string; icon: "project" | "knowledge" | "memory"; isOpen: boolean; name: string }) {
  return (
    <a className="list-briefings" href={to} aria-current={isOpen ? "page" : undefined} onClick={(event) => follow(event, to)}>
      <Icon name={icon} />
      {name}
    </a>
  );
}

type SearchProps = { conversations: Conversations; first: Conversation | undefined; onOpen: Props["onOpen"] };

function Search({ conversations: { query, found, search, items, progress }, first, onOpen }: SearchProps) {
  const isDone = found !== "" && found === query.trim() && progress === "idle";
  /** The text with which the reader has pressed Enter before its result was there. */
  const [entered, setEntered] = useState<string>();
  useEffect(() => {
    if (entered === undefined || (isDone && entered === found)) setEntered(undefined);
    if (isDone && entered === found && first) onOpen(first.id, placeOf(first), placeOf(first) && found);
  }, [entered, isDone, found, first, onOpen]);
  return (
    <div className="list-search" role="search">
      <Icon name="search" />
      <input
        className="field"
        data-command="search"
        type="search"
        dir="auto"
        maxLength={200}
        placeholder={words.shell.list.search}
        aria-label={words.shell.list.search}
        value={query}
        onChange={(event) => {
          setEntered(undefined);
          search(event.target.value);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !isComposing(event) && query.trim() !== "") setEntered(query.trim());
          if (event.key !== "Escape") return;
          // The first Esc empties the field; only the next one leaves it, or closes the drawer.
          if (query === "") return event.currentTarget.blur();
          event.preventDefault();
          event.stopPropagation();
          search("");
        }}
      />
      {query !== "" && (
        <button
          type="button"
          className="icon-button"
          aria-label={words.shell.list.clear}
          title={words.shell.list.clear}
          onClick={() => search("")}
        >
          <Icon name="close" />
        </button>
      )}
      <span className="unseen" role="status">
        {isDone && items.length > 0 && words.shell.list.found(items.length)}
      </span>
    </div>
  );
}

/** Follows the last conversation: it loads more, or says why none is there. */
function Rest({ conversations, isEmpty }: { conversations: Conversations; isEmpty: boolean }) {
  const { progress, found, query, isAway, hasMore, readMore, readAgain } = conversations;
  // The list keeps older results below a search that has no result yet.
  if (isAway && query.trim() !== "" && found !== query.trim()) {
    return (
      <p className="list-rest" role="status">
        {words.shell.list.offline}
      </p>
    );
  }
  // Older results are still good. Only a reader who sees no list, or not the wanted one, needs the notice.
  if (progress === "failed" && (isEmpty || found !== query.trim())) {
    return (
      <div className="list-rest" role="status">
        <p>{words.shell.list.unreachable}</p>
        <button type="button" className="button" onClick={readAgain}>
          {words.shell.retry}
        </button>
      </div>
    );
  }
  if (hasMore) return <End onReached={readMore} />;
  if (!isEmpty) return null;
  if (progress === "loading") return <Skeleton />;
  return <p className="list-rest">{found ? words.shell.list.nothing(found) : words.shell.list.empty}</p>;
}

/** Loads more as soon as the end of the list comes near. */
function End({ onReached }: { onReached(): void }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && onReached(), { rootMargin: "400px" });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [onReached]);
  return (
    <div ref={element}>
      <Skeleton />
    </div>
  );
}

function Skeleton() {
  return (
    <div className="list-skeleton" role="img" aria-label={words.shell.list.loading}>
      <span />
      <span />
      <span />
    </div>
  );
}

function headingOf(group: Group): string {
  if (group.key !== "older") return words.shell.list[group.key];
  const isThisYear = group.year === new Date().getFullYear();
  const month = new Date(group.year, group.month);
  return month.toLocaleDateString(locale, { month: "long", year: isThisYear ? undefined : "numeric" });
}
