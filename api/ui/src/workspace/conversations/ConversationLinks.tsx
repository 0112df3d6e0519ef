// The conversations about a project. One whose run is at work has a sign.
import type { Conversation } from "../../client/server";
import { words } from "../../i18n";
import { texts } from "../../i18n/workspace";
import { Moment } from "../../messages/SentAt";
import { pathOf } from "../../shell/address";
import { Icon } from "../../shell/controls/icons";
import { PageLink } from "../PageLink";
import type { ProjectConversations } from "./useProjectConversations";
import "./ConversationLinks.css";

export function ConversationLinks({ conversations: { found, isFailed, readMore, readAgain }, onTalk }: { conversations: ProjectConversations; onTalk(): void }) {
  if (!found && isFailed) {
    return (
      <div className="rest" role="status">
        <p>{texts.list.unreachable}</p>
        <button type="button" className="button" onClick={readAgain}>
          {words.shell.retry}
        </button>
      </div>
    );
  }
  if (!found) return <div className="rest rest-loading" role="img" aria-label={texts.list.loading} />;
  if (found.items.length === 0 && !found.hasMore) {
    return (
      <div className="board-empty">
        <h2>{texts.conversations.none}</h2>
        <p>{texts.conversations.about}</p>
        <button type="button" className="button" data-main="" onClick={onTalk}>
          <Icon name="talk" />
          {texts.conversations.begin}
        </button>
      </div>
    );
  }
  return (
    <>
      <ul role="list" className="conversation-links" aria-label={texts.section.conversations}>
        {found.items.map((conversation) => (
          <ConversationLink key={conversation.id} conversation={conversation} />
        ))}
      </ul>
      {found.hasMore && (
        <div className="rest">
          <button type="button" className="button" onClick={readMore}>
            {texts.list.more}
          </button>
        </div>
      )}
    </>
  );
}

function ConversationLink({ conversation: { id, title, live_run_id, last_message_at, created_at } }: { conversation: Conversation }) {
  return (
    <li>
      <PageLink to={pathOf(id)} className="conversation-link">
        <span className="conversation-title" dir="auto">
          {title ?? words.shell.untitled}
        </span>
        {live_run_id !== null && <span className="item-live" role="img" aria-label={words.shell.list.live} title={words.shell.list.live} />}
        <Moment at={last_message_at ?? created_at} />
      </PageLink>
    </li>
  );
}
