// Shows one message: its author, its content, its time and its actions.
import { memo } from "react";

import type { Progress, Unsent } from "../chat/chat";
import { type ChatMessage, questionsOf, textOf } from "../chat/message";
import { words } from "../i18n";
import { later } from "../later";
import { Answer } from "./Answer";
import { Ended } from "./Ended";
import { entitiesOf, hasChanges } from "./entities";
import { memoriesOf } from "./memories";
import { MemoryFoot } from "./MemoryFoot";
import { MessageActions } from "./MessageActions";
import { UserMessage } from "./UserMessage";
import { SentAt } from "./SentAt";
import type { Actions } from "./useActions";
import { VersionSwitch } from "./VersionSwitch";

// The page loads it later, because most answers ask nothing.
const AskedQuestions = later(async () => (await import("./AskedQuestions")).AskedQuestions);

// Only answers with calls of the workspace's tools have it.
const WorkspaceFoot = later(async () => (await import("./WorkspaceFoot")).WorkspaceFoot);

const NONE: string[] = [];

type Props = {
  message: ChatMessage;
  /** An unsent edit of this message. */
  unsent?: Unsent;
  isNewest: boolean;
  /** Whether a link or a search has led to it. */
  isFound: boolean;
  /** The chat's progress for its newest message; `idle` for the others. */
  progress: Progress;
  /** The agent's own word for its current activity. */
  doing?: string;
  actions: Actions;
};

/**
 * React renders it again only after a change: the SDK makes a new object of a message that it changes, and keeps the
 * others.
 */
export const Message = memo(function Message({ message, unsent, isNewest, isFound, progress, doing, actions }: Props) {
  if (message.role === "user") {
    return (
      <article className="message user-message" aria-label={words.message.you} data-id={message.id} data-newest={isNewest || undefined} data-found={isFound || undefined}>
        <h2 className="unseen">{words.message.you}</h2>
        <UserMessage message={message} unsent={unsent} onEdit={actions.edit} onRestore={actions.restore} />
      </article>
    );
  }
  const isLive = progress === "submitted" || progress === "streaming" || progress === "waiting";
  const isWorking = isLive && progress !== "waiting";
  // The fields for a completed run's questions stand below it until the reader's next message.
  const questions = isNewest && !isLive && message.metadata?.status === "completed" ? questionsOf(message) : NONE;
  return (
    <article className="message answer" aria-label={words.message.assistant} data-id={message.id} data-newest={isNewest || undefined} data-found={isFound || undefined}>
      <h2 className="unseen">{words.message.assistant}</h2>
      <Answer message={message} questions={questions} isLive={isLive} isWorking={isWorking} doing={doing} actions={actions} />
      {questions.length > 0 && <AskedQuestions draft={`asked ${message.metadata?.runId ?? message.id}`} questions={questions} say={actions.say} />}
      <Ended message={message} isNewest={isNewest} isLive={isLive} goOn={() => actions.say(words.message.goOnText)} />
      {!isLive && (hasChanges(message) || entitiesOf(message).length > 0) && <WorkspaceFoot message={message} />}
      {!isLive && <MemoryFoot ids={memoriesOf(message)} />}
      {message.role === "assistant" && <Foot message={message} isLive={isLive} actions={actions} />}
    </article>
  );
});

/** The line below an answer. A live answer reserves its height from the start, so that its end moves nothing. */
function Foot({ message, isLive, actions }: Pick<Props, "message" | "actions"> & { isLive: boolean }) {
  if (!isLive && textOf(message) !== "") return <MessageActions message={message} actions={actions} />;
  if (!isLive && !message.metadata?.version) return undefined;
  return (
    <div className="actions">
      {!isLive && <VersionSwitch message={message} restore={actions.restore} />}
      <SentAt message={message} />
    </div>
  );
}
