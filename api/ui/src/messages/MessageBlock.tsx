// A block of messages, or the room for one that is not drawn yet.
import { Fragment, memo, useEffect, useRef } from "react";

import type { Chat, Unsent } from "../chat/chat";
import type { ChatMessage } from "../chat/message";
import { words } from "../i18n";
import { Message } from "./Message";
import type { Actions } from "./useActions";

type Props = {
  messages: ChatMessage[];
  /** Whether its last message is the newest one. */
  isNewest: boolean;
  /** Whether so many messages follow it that the browser may skip its rendering while it is out of sight. */
  isOld: boolean;
  /** The message that a link or a search has led to. */
  found?: string;
  /** The first message that the model reads word by word. */
  verbatim?: string;
  /** An unsent edit of one of its messages. */
  unsent?: Unsent;
  /** The chat's progress and current activity, for its newest message. */
  progress: Chat["progress"];
  doing?: string;
  actions: Actions;
};

/** React renders it again only if one of its messages, or what concerns them, has changed. */
export const MessageBlock = memo(
  function MessageBlock({ messages, isNewest, isOld, found, verbatim, unsent, progress, doing, actions }: Props) {
    return (
      <div className="message-block" data-old={isOld || undefined}>
        {messages.map((message, index) => {
          const isLast = isNewest && index === messages.length - 1;
          return (
            <Fragment key={message.id}>
              {message.id === verbatim && <p className="summarised">{words.message.summarised}</p>}
              <Message
                message={message}
                unsent={unsent?.instead === message.id ? unsent : undefined}
                isNewest={isLast}
                isFound={found === message.id}
                progress={isLast ? progress : "idle"}
                doing={isLast ? doing : undefined}
                actions={actions}
              />
            </Fragment>
          );
        })}
      </div>
    );
  },
  ({ messages: before, ...one }, { messages: after, ...other }) =>
    before.length === after.length && before.every((message, index) => message === after[index]) && areEqual(one, other),
);

function areEqual(one: Omit<Props, "messages">, other: Omit<Props, "messages">): boolean {
  return (Object.keys({ ...one, ...other }) as (keyof typeof one)[]).every((name) => one[name] === other[name]);
}

/** A message is about this high. */
const HEIGHT_REM = 8;

export function BlockRoom({ count, draw }: { count: number; draw: () => void }) {
  const room = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && draw(), { root: room.current!.closest("[role=log]"), rootMargin: "1000px" });
    observer.observe(room.current!);
    return () => observer.disconnect();
  }, [draw]);
  return <div className="message-block" ref={room} style={{ blockSize: `${count * HEIGHT_REM}rem` }} />;
}
