// The page has the list, the open chat, and the notices above both.
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";

import type { AgentContext } from "../client/context";
import { anyCollection, readBriefings, readServer } from "../client/server";
import { useTransfers } from "../files/useTransfers";
import { words } from "../i18n";
import { later } from "../later";
import { useAccount } from "./account/useAccount";
import { type Reader, useSession } from "./account/useSession";
import { Caution } from "./Caution";
import { Conversation } from "./chat/Conversation";
import { Header } from "./chat/Header";
import { useAbout } from "./chat/useAbout";
import { useAgents } from "./chat/useAgents";
import { Dialog } from "./controls/Dialog";
import { Toasts } from "./controls/Toasts";
import { type DialogName, Dialogs } from "./Dialogs";
import { focusOn } from "./focus";
import { ConversationList } from "./list/ConversationList";
import { Foot } from "./list/Foot";
import { neighbour } from "./list/listed";
import { useConversations } from "./list/useConversations";
import { useDeletion } from "./list/useDeletion";
import { type ListPlace, useListPlace } from "./list/useListPlace";
import { useSessions } from "./list/useSessions";
import { useShortcuts } from "./shortcuts/useShortcuts";
import { useNavigation } from "./useNavigation";
import { useRead } from "./useRead";
import "./controls/controls.css";
import "./App.css";

// The page loads the workspace and the knowledge when the reader first opens them.
const Workspace = later(async () => (await import("../workspace/Workspace")).Workspace);
const Knowledge = later(async () => (await import("../knowledge/Knowledge")).Knowledge);

// So with the memories.
const MemoriesPage = later(async () => (await import("../memories/MemoriesPage")).MemoriesPage);

// Few addresses lead nowhere.
const NoChat = later(async () => (await import("./NoChat")).NoChat);

const anyBriefing = async () => (await readBriefings({ limit: 1 })).items.length > 0;

export function App() {
  const reader = useSession();
  // Another reader has other conversations: the page keeps nothing of the last reader's.
  return <Page key={reader.count} reader={reader} />;
}

function Page({ reader }: { reader: Reader }) {
  // The page does not wait for the reader's identity, because nearly always the server accepts any caller.
  const isAllowed = reader.session.state !== "refused";
  const listPlace = useListPlace();
  const navigation = useNavigation(listPlace.closeDrawer);
  const { open, current, goToWrite } = navigation;
  const conversations = useConversations(isAllowed);
  const { items } = conversations;
  const { session } = reader;
  const { deleted, remove, settle } = useDeletion(conversations.readAgain);
  const account = useAccount(reader, settle, navigation.leave, conversations.readAgain);
  const agents = useAgents(isAllowed);
  const [server] = useRead(true, readServer);
  const [hasBriefings, readBriefingsAgain] = useRead(isAllowed, anyBriefing);
  const [hasCollections, readCollectionsAgain] = useRead(isAllowed, anyCollection);
  const sessions = useSessions(isAllowed, items.length);
  const { about, isMissing } = useAbout(isAllowed ? current : undefined, items.find(({ id }) => id === current));
  const originId = about?.forked_conversation_id ?? undefined;
  const { about: origin } = useAbout(isAllowed ? originId : undefined, items.find(({ id }) => id === originId));
  /** The open conversation, if it waits for the reader. */
  const [openWaits, setOpenWaits] = useState<string>();
  const waiting = useWithOpen(conversations.waiting, openWaits);
  const [dialog, setDialog] = useState<DialogName>();
  /** The context of the next new chat. */
  const [context, setContext] = useState<AgentContext>();
  useTransfers();

  const onTalk = (context: AgentContext) => {
    const planner = agents.agents.find(({ kind }) => kind === "planner");
    if (planner) agents.choose(planner.id);
    setContext(context);
    navigation.goToNew();
  };
  const goToNew = () => {
    setContext(undefined);
    navigation.goToNew();
  };

  const onDelete = (id: string, title: string) => {
    const wasOpen = id === current;
    if (wasOpen) navigation.leave();
    remove(id, title, () => wasOpen && navigation.goTo(id));
  };
  const step = (by: 1 | -1) => {
    const shown = items.filter(({ id }) => !deleted.has(id));
    const other = neighbour(shown, current, by);
    if (other) navigation.goTo(other.id);
  };
  useShortcuts({
    newChat: goToNew,
    search: () => {
      flushSync(() => listPlace.show(true));
      focusOn("search");
    },
    next: () => step(1),
    previous: () => step(-1),
    list: () => listPlace.show(!listPlace.isShown),
    help: () => setDialog("shortcuts"),
  });

  // The reader may have created the first collection there.
  const wasKnowledge = useRef(false);
  useEffect(() => {
    if (wasKnowledge.current) readCollectionsAgain();
    wasKnowledge.current = open.at === "knowledge";
  }, [open.at, readCollectionsAgain]);

  const isNowhere = open.at === "nowhere";
  const isPage = open.at === "workspace" || open.at === "memories" || open.at === "knowledge";
  const isGone = current !== undefined && (isMissing || deleted.has(current));
  const hasNoChat = open.at !== "chat" || isGone;
  const head = { isListShown: listPlace.isShown, onShowList: () => listPlace.show(true), onNew: goToNew };
  return (
    <>
      <a className="skip" href={!hasNoChat && isAllowed ? "#compose" : "#chat"}>
        {isPage ? words.shell.skipToPage : words.shell.skip}
      </a>
      <Caution warning={server?.warning} />
      <div className="page">
        <ListArea place={listPlace}>
          <ConversationList
            conversations={conversations}
            deleted={deleted}
            current={current}
            waiting={waiting}
            sessions={sessions}
            at={open.at}
            onBriefings={hasBriefings ? () => setDialog("briefings") : undefined}
            onOpen={goToWrite}
            onNew={goToNew}
            onHide={() => listPlace.show(false)}
            onDelete={onDelete}
          >
            <Foot account={account} onSignIn={() => setDialog("sign in")} onShortcuts={() => setDialog("shortcuts")} />
          </ConversationList>
        </ListArea>
        {open.at === "workspace" && isAllowed ? (
          <Workspace view={open.view} frame={{ isListShown: listPlace.isShown, onShowList: head.onShowList, waiting: waiting.size, live: liveRunsOf(items), isOperator: session.state === "known" && session.me.operator, onTalk }} />
        ) : open.at === "memories" && isAllowed ? (
          <MemoriesPage isListShown={listPlace.isShown} onShowList={head.onShowList} waiting={waiting.size} />
        ) : open.at === "knowledge" && isAllowed ? (
          <Knowledge view={open.view} frame={{ isListShown: listPlace.isShown, onShowList: head.onShowList, waiting: waiting.size }} />
        ) : isPage ? (
          <main className="chat" id="chat" tabIndex={-1} />
        ) : isNowhere || isGone ? (
          <NoChat gone={current} undo={current === undefined ? undefined : deleted.get(current)} waiting={waiting.size} header={<Header {...head} />} onNew={goToNew} />
        ) : !isAllowed ? (
          <main className="chat" id="chat" tabIndex={-1} />
        ) : (
          <Conversation
            key={open.key}
            open={open}
            about={about}
            place={navigation.place}
            onPlaceLeft={navigation.leavePlace}
            model={server?.model}
            isLockable={server?.composer === "locked"}
            waiting={waiting.size}
            origin={origin && { title: origin.title ?? words.shell.untitled, open: () => navigation.goTo(origin.id) }}
            agents={agents}
            context={open.isNew ? context : undefined}
            hasCollections={hasCollections}
            isNarrow={listPlace.isNarrow}
            onFork={goToWrite}
            unsaved={about && conversations.unsaved.get(about.id)}
            onRename={(conversation, title) => void conversations.rename(conversation, title)}
            onDelete={onDelete}
            onSettled={navigation.settle}
            onChanged={conversations.readAgain}
            onWaiting={setOpenWaits}
            onRefused={account.askAgain}
            {...head}
          />
        )}
      </div>
      <Dialogs open={dialog} account={account} onTalk={goToWrite} onBriefingsChanged={readBriefingsAgain} onClose={() => setDialog(undefined)} />
      {!(listPlace.isNarrow && listPlace.isShown) && <Toasts />}
    </>
  );
}

function liveRunsOf(items: readonly { live_run_id: string | null }[]): string {
  return items.flatMap(({ live_run_id }) => live_run_id ?? []).join();
}

/** Returns the conversations that wait, with the open one: its page knows earlier than the list. */
function useWithOpen(waiting: ReadonlySet<string>, openWaits: string | undefined): ReadonlySet<string> {
  return useMemo(() => (openWaits === undefined || waiting.has(openWaits) ? waiting : new Set([openWaits, ...waiting])), [waiting, openWaits]);
}

function ListArea({ place, children }: { place: ListPlace; children: ReactNode }) {
  if (!place.isShown) return null;
  if (!place.isNarrow) return <div className="beside">{children}</div>;
  return (
    <Dialog as="drawer" title={words.shell.list.name} onClose={place.closeDrawer}>
      {children}
      {/* A reader cannot press a button outside of a modal dialog. */}
      <Toasts />
    </Dialog>
  );
}
