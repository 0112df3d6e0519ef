// Lists the messages of a conversation, newest last, and at their end the run's activity. It scrolls by itself.
import { Fragment, useEffect, useLayoutEffect, useRef } from "react";

import type { Chat, Posting, WaitingMessage } from "../chat/chat";
import { verbatimFrom } from "../chat/context";
import { words } from "../i18n";
import { useRefocus } from "../refocus";
import { Announcer } from "./Announcer";
import { Ending } from "./Ending";
import { useFollow } from "./follow";
import { Icon } from "./icons";
import { Message } from "./Message";
import { hasSent } from "./sent";
import { useActions } from "./useActions";
import { useGradually } from "./useGradually";
import { Waiting } from "./Waiting";
import "../shell/controls/controls.css";
import "./messages.css";
import "./parts.css";

/** The browser renders this many messages before the newest one even out of sight. */
const RECENT = 5;

type Props = {
  chat: Chat;
  /** The message to go to; each object leads there once. */
  place?: { messageId: string };
  onFork: (id: string) => void;
  /** The reader has taken this message back. */
  onTakenBack: (message: WaitingMessage | Posting) => void;
};

export function Messages({ chat, place, onFork, onTakenBack }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAway, goToEnd, leave } = useFollow(scroller, content);
  const before = useRef(chat);
  // After sending, a reader wants to see the answer.
  useLayoutEffect(() => {
    if (hasSent(before.current, chat)) goToEnd();
    before.current = chat;
  }, [chat, goToEnd]);
  const actions = useActions(chat, onFork);
  const first = useGradually(chat.messages.length);
  const newest = chat.messages.length - 1;
  const verbatim = verbatimFrom(chat.messages);
  const visited = useRef<typeof place>(undefined);
  // The effect runs after every render, because the history arrives later than the address, and a long one gradually.
  useEffect(() => {
    if (!place || visited.current === place) return;
    const message = content.current?.querySelector(`[data-id="${CSS.escape(place.messageId)}"]`);
    if (!message) return;
    visited.current = place;
    leave();
    message.scrollIntoView({ block: "center" });
  });
  const isBusy = chat.progress === "submitted" || chat.progress === "streaming";

  return (
    <div className="messages">
      <h2 className="unseen">{words.message.list}</h2>
      {/* A screen reader announces every change of a log. An answer changes with every word, so the announcer speaks
          instead. */}
      <div className="messages-scroller" ref={scroller} role="log" aria-live="off" aria-label={words.message.list} aria-busy={isBusy} tabIndex={0}>
        <div className="messages-content" ref={content} data-busy={isBusy || undefined} data-idle={chat.progress === "idle" || undefined}>
          {chat.messages.slice(first).map((message, index) => {
            const behind = newest - first - index;
            const isNewest = behind === 0;
            const unsent = chat.unsent?.instead === message.id && !chat.unsent.isUnderway ? chat.unsent : undefined;
            return (
              <Fragment key={message.id}>
                {message.id === verbatim && <p className="summarised">{words.message.summarised}</p>}
                <Message message={message} unsent={unsent} isNewest={isNewest} isFound={place?.messageId === message.id} isOld={behind > RECENT} progress={isNewest ? chat.progress : "idle"} doing={isNewest ? chat.doing : undefined} actions={actions} />
              </Fragment>
            );
          })}
          <Ending chat={chat} />
          {chat.waiting.map((message) => (
            <Waiting key={message.id} message={message} hint={words.message.waiting[message.mode]} takeBack={chat.takeBack} onTakenBack={onTakenBack} />
          ))}
          {chat.posting.map((posting) => posting.state === "held" && <Waiting key={posting.id} message={posting} hint={words.list.notSent} takeBack={chat.takeBack} onTakenBack={onTakenBack} />)}
        </div>
      </div>
      {isAway && <Latest go={goToEnd} log={() => scroller.current} />}
      <Announcer chat={chat} />
    </div>
  );
}

function Latest({ go, log }: { go: () => void; log: () => HTMLElement | null }) {
  const button = useRefocus<HTMLButtonElement>(log);
  return (
    <button type="button" className="latest" ref={button} onClick={go}>
      <Icon name="down" />
      {words.list.latest}
    </button>
  );
}
