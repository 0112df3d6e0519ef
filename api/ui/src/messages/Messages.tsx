// Lists the messages of a conversation, newest last, and at their end the run's activity. It scrolls by itself.
import { useEffect, useLayoutEffect, useMemo, useRef } from "react";

import type { Chat, Posting, WaitingMessage } from "../chat/chat";
import { verbatimFrom } from "../chat/context";
import { words } from "../i18n";
import { useRefocus } from "../refocus";
import { Announcer } from "./Announcer";
import { type Block, blocksOf } from "./blocks";
import { Earlier } from "./Earlier";
import { Ending } from "./Ending";
import { useFollow } from "./follow";
import { Icon } from "./icons";
import { useSentEdits } from "./editDrafts";
import { BlockRoom, MessageBlock } from "./MessageBlock";
import { hasSent } from "./sent";
import { type Place, Sought } from "./sought";
import { useActions } from "./useActions";
import { useDrawn } from "./useDrawn";
import { useEarlier } from "./useEarlier";
import { Waiting } from "./Waiting";
import "../shell/controls/controls.css";
import "./messages.css";
import "./parts.css";

/** The browser renders this many messages before the newest one even out of sight. */
const RECENT = 5;

type Props = {
  chat: Chat;
  /** The message to go to; each object leads there once. */
  place?: Place;
  /** The reader has gone on from that message: to the end, or by sending another one. */
  onPlaceLeft: () => void;
  onFork: (id: string) => void;
  /** The reader has taken this message back. */
  onTakenBack: (message: WaitingMessage | Posting) => void;
};

export function Messages({ chat, place, onPlaceLeft, onFork, onTakenBack }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAway, goToEnd, leave } = useFollow(scroller, content);
  const before = useRef(chat);
  // After sending, a reader wants to see the answer.
  useLayoutEffect(() => {
    if (hasSent(before.current, chat)) {
      goToEnd();
      onPlaceLeft();
    }
    before.current = chat;
  }, [chat, goToEnd, onPlaceLeft]);
  const wasAway = useRef(false);
  useEffect(() => {
    if (wasAway.current && !isAway) onPlaceLeft();
    wasAway.current = isAway;
  }, [isAway, onPlaceLeft]);
  const actions = useActions(chat, onFork);
  useSentEdits(chat);
  /** The first message of the first read. */
  const from = useRef<string>(undefined);
  if (!chat.messages.some(({ id }) => id === from.current)) from.current = chat.messages[0]?.id;
  const blocks = useMemo(() => blocksOf(chat.messages, from.current), [chat.messages]);
  const behind = useMemo(() => countBehind(blocks), [blocks]);
  const { isDrawn, draw } = useDrawn(blocks, place?.messageId);
  const verbatim = verbatimFrom(chat.messages);
  const unsent = chat.unsent?.isUnderway === false ? chat.unsent : undefined;
  useEarlier(chat, scroller, place, leave);
  const isBusy = chat.progress === "submitted" || chat.progress === "streaming";

  return (
    <div className="messages">
      <h2 className="unseen">{words.message.list}</h2>
      {/* A screen reader announces every change of a log. An answer changes with every word, so the announcer speaks
          instead. */}
      <div className="messages-scroller" ref={scroller} role="log" aria-live="off" aria-label={words.message.list} aria-busy={isBusy} tabIndex={0}>
        <div className="messages-content" ref={content} data-busy={isBusy || undefined} data-idle={chat.progress === "idle" || undefined}>
          {chat.earlier && <Earlier earlier={chat.earlier} readEarlier={chat.readEarlier} />}
          <Sought value={place}>
            {blocks.map((block, index) =>
              isDrawn(block, index) ? (
                <MessageBlock
                  key={block.key}
                  messages={block.messages}
                  isNewest={index === blocks.length - 1}
                  isOld={behind[index]! > RECENT}
                  found={among(block, place?.messageId)}
                  verbatim={among(block, verbatim)}
                  unsent={among(block, unsent?.instead) === undefined ? undefined : unsent}
                  progress={index === blocks.length - 1 ? chat.progress : "idle"}
                  doing={index === blocks.length - 1 ? chat.doing : undefined}
                  actions={actions}
                />
              ) : (
                <BlockRoom key={block.key} count={block.messages.length} draw={() => draw(block.key)} />
              ),
            )}
          </Sought>
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

/** Returns the message if the block has it. */
function among({ messages }: Block, id: string | undefined): string | undefined {
  return id !== undefined && messages.some((message) => message.id === id) ? id : undefined;
}

/** Returns for each block how many messages follow it. */
function countBehind(blocks: Block[]): number[] {
  let count = 0;
  const behind = blocks.toReversed().map(({ messages }) => (count += messages.length) - messages.length);
  return behind.reverse();
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
