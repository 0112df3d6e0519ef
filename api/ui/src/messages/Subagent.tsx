// The work of a subagent, in a conversation of its own: its text, its calls, its questions, and a button that stops it.
import { useEffect, useState } from "react";

import { useConversation } from "../chat/useConversation";
import { readRun } from "../client/server";
import { words } from "../i18n";
import { Answer } from "./Answer";
import { Spinner } from "./icons";
import { useActions } from "./useActions";

export function Subagent({ runId }: { runId: string }) {
  const [conversationId, setConversationId] = useState<string>();
  const [isGone, setGone] = useState(false);
  useEffect(() => {
    let isOpen = true;
    readRun(runId).then(
      (run) => isOpen && setConversationId(run.conversation_id),
      () => isOpen && setGone(true),
    );
    return () => {
      isOpen = false;
    };
  }, [runId]);
  if (isGone) return <p className="nothing">{words.subagent.gone}</p>;
  if (conversationId === undefined) return <Spinner />;
  return <Conversation id={conversationId} />;
}

function Conversation({ id }: { id: string }) {
  const chat = useConversation({ id, isNew: false });
  const actions = useActions(chat, () => {});
  const answer = chat.messages.findLast((message) => message.role === "assistant");
  const isWorking = chat.progress === "submitted" || chat.progress === "streaming";
  const isLive = isWorking || chat.progress === "waiting";
  return (
    <div className="subagent" role="group" aria-label={words.subagent.title}>
      {answer ? <Answer message={answer} isLive={isLive} isWorking={isWorking} doing={chat.doing} actions={actions} /> : chat.progress !== "idle" && <Spinner />}
      {!answer && chat.progress === "idle" && <p className="nothing">{words.subagent.nothing}</p>}
      {isLive && (
        <div className="card-actions">
          <button type="button" className="button" onClick={chat.stop}>
            {words.subagent.stop}
          </button>
        </div>
      )}
    </div>
  );
}
