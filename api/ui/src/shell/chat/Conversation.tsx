// One chat has its header, its messages and the message field.
import { useEffect, useRef, useState } from "react";

import { type AgentContext, isAboutProject } from "../../client/context";
import type { Conversation as About, ServerInfo } from "../../client/server";
import { contextUsage } from "../../chat/context";
import { useConversation } from "../../chat/useConversation";
import { words } from "../../i18n";
import { later } from "../../later";
import { AgentPicker } from "./AgentPicker";
import { Composer, type Suggestion } from "../composer/Composer";
import { NEW_CHAT } from "../composer/drafts";
import { Header } from "./Header";
import { MessagesLater } from "./MessagesLater";
import { firstQuestion, lastAnswer } from "./excerpts";
import { firstWords, pageTitle } from "./title";
import { showToast } from "../controls/toasts";
import type { useAgents } from "./useAgents";
import type { Open, Place } from "../useOpen";
import { useChatContext } from "../context/useChatContext";
import { useShortcuts } from "../shortcuts/useShortcuts";
import { Tries, Welcome } from "./Welcome";
import { tellDeleted } from "../conversationChanges";
import "./Conversation.css";

// Only planners have a context.
const ContextBar = later(async () => (await import("../context/ContextBar")).ContextBar);
const ContextScreen = later(async () => (await import("../context/ContextScreen")).ContextScreen);
// Only readers with collections choose from them.
const KnowledgeBar = later(async () => (await import("../../knowledge/KnowledgeBar")).KnowledgeBar);

type Props = {
  open: Extract<Open, { at: "chat" }>;
  about: About | undefined;
  place?: Place;
  onPlaceLeft(): void;
  model?: ServerInfo["model"];
  /** Whether this installation locks the message field while an answer is being made. */
  isLockable?: boolean;
  /** The number of conversations that wait for the reader. */
  waiting: number;
  /** The conversation that this one continues. */
  origin?: { title: string; open(): void };
  agents: ReturnType<typeof useAgents>;
  /** The context of a new chat, if the reader comes from a page that has one. */
  context?: AgentContext;
  /** Whether the reader has any collection. */
  hasCollections?: boolean;
  isNarrow: boolean;
  isListShown: boolean;
  onShowList(): void;
  onNew(): void;
  onFork(id: string): void;
  /** The title that the reader has typed and the server does not have. */
  unsaved?: string;
  onRename(conversation: About, title: string): void;
  onDelete(id: string, title: string): void;
  /** The server has made this conversation of the chat. */
  onSettled(key: string, conversationId: string): void;
  /** The list may show outdated facts. */
  onChanged(): void;
  /** Receives the conversation's id if it waits for the reader. */
  onWaiting(conversationId: string | undefined): void;
  /** The server no longer accepts the reader's token. */
  onRefused(): void;
};

export function Conversation(props: Props) {
  const { open, about, agents, onSettled, onChanged, onWaiting, onRefused } = props;
  const chat = useConversation({ id: open.key, isNew: open.isNew, agentId: open.isNew ? agents.chosen : undefined });
  const field = useRef<HTMLTextAreaElement>(null);
  const [suggestion, setSuggestion] = useState<Suggestion>();
  const [isRenaming, setIsRenaming] = useState(false);

  const agent = agents.agents.find(({ id }) => id === (about ? about.agent_id : open.isNew ? agents.chosen : undefined));
  const context = useChatContext(chat, agent?.kind === "planner", props.context);

  const { conversationId } = chat;
  const isBusy = chat.progress === "submitted" || chat.progress === "streaming";
  const isEmpty = chat.messages.length === 0 && chat.progress === "idle" && !chat.problem;
  const title = about?.title ?? firstWords(firstQuestion(chat.messages) ?? "") ?? (open.isNew && isEmpty ? undefined : words.shell.untitled);

  useEffect(() => {
    if (conversationId !== undefined) onSettled(open.key, conversationId);
  }, [open.key, conversationId, onSettled]);
  useEffect(() => {
    if (conversationId !== undefined) onChanged();
  }, [conversationId, isBusy, onChanged]);
  const waiting = chat.progress === "waiting" ? conversationId : undefined;
  useEffect(() => {
    onWaiting(waiting);
    return () => onWaiting(undefined);
  }, [waiting, onWaiting]);
  useEffect(() => {
    if (chat.problem?.status === 401) onRefused();
  }, [chat.problem, onRefused]);
  // The conversation was deleted elsewhere. First the field gets back the text that the server has refused.
  const [isGone, setIsGone] = useState(false);
  useEffect(() => setIsGone(chat.problem?.code === "conversation_not_found"), [chat.problem]);
  useEffect(() => {
    if (isGone && conversationId !== undefined) tellDeleted(conversationId);
  }, [isGone, conversationId]);
  useEffect(() => {
    document.title = pageTitle(title, isBusy, props.waiting);
  }, [title, isBusy, props.waiting]);

  useShortcuts({
    compose: () => field.current?.focus(),
    // A key does not end a run that waits for an answer.
    ...(isBusy ? { stop: chat.stop } : {}),
    copy: () => copy(lastAnswer(chat.messages)),
  });

  // An agent may have its own model.
  const model = agent?.model?.name ? undefined : props.model;
  const isChoosing = isEmpty && open.isNew && context.shown !== undefined;
  const tries = isEmpty && !isChoosing && <Tries onTry={(text) => setSuggestion({ text })} />;
  return (
    <main className="chat" data-empty={isEmpty || undefined}>
      <Header
        title={title}
        agent={about && agent?.name}
        model={model}
        context={isEmpty ? undefined : contextUsage(chat.messages)}
        origin={props.origin}
        isListShown={props.isListShown}
        onShowList={props.onShowList}
        onNew={props.onNew}
        actions={
          about && {
            isRenaming,
            unsaved: props.unsaved,
            beginRename: () => setIsRenaming(true),
            rename: (name) => {
              setIsRenaming(false);
              if (name !== undefined) props.onRename(about, name);
            },
            remove: () => props.onDelete(about.id, title ?? words.shell.untitled),
          }
        }
      />
      {context.shown && (!isEmpty || isAboutProject(context.shown)) && <ContextBar context={context.shown} onChange={context.choose} />}
      {(props.hasCollections || about?.knowledge) && <KnowledgeBar chat={chat} known={about?.knowledge} />}
      <div className="chat-room">
        {isChoosing && context.shown ? <ContextScreen context={context.shown} onChoose={context.choose} /> : isEmpty ? <Welcome isScripted={model?.is_real === false} /> : <MessagesLater chat={{ ...chat, restore: (id) => chat.restore(id).finally(onChanged) }} place={props.place} onPlaceLeft={props.onPlaceLeft} onFork={props.onFork} onTakenBack={({ text, files }) => setSuggestion({ text, files, isTakenBack: true })} />}
      </div>
      {/* On a small page, the suggestions stand above the field, and the field stays at the bottom. */}
      {props.isNarrow && tries}
      <Composer chat={chat} draft={open.conversationId ?? NEW_CHAT} field={field} suggestion={suggestion} isLockable={props.isLockable}>
        {isEmpty && open.isNew && (agents.areExpected || agents.agents.length > 0) && <AgentPicker {...agents} />}
      </Composer>
      {!props.isNarrow && <div className="chat-below">{tries}</div>}
    </main>
  );
}

function copy(text: string | undefined) {
  if (text === undefined) return showToast(words.shell.nothingToCopy);
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("only on secure pages"));
  copied.then(
    () => showToast(words.shell.copied),
    () => showToast(words.shell.notCopied),
  );
}
