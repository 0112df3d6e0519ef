// The page has the list, the open chat, and the notices above both.
import { useCallback, useEffect, useMemo, useState } from "react";
import { flushSync } from "react-dom";

import { readBriefings, readServer } from "../client/server";
import { words } from "../i18n";
import { later } from "../later";
import { Caution } from "./Caution";
import { Conversation } from "./Conversation";
import { ConversationList } from "./ConversationList";
import { Dialog } from "./Dialog";
import { Foot } from "./Foot";
import { Header } from "./Header";
import { keep, read } from "./kept";
import { neighbour } from "./listed";
import { Nowhere } from "./Nowhere";
import { pageTitle } from "./title";
import { Toasts } from "./Toasts";
import { showToast } from "./toasts";
import { useAbout } from "./useAbout";
import { useAgents } from "./useAgents";
import { useConversations } from "./useConversations";
import { useDeletion } from "./useDeletion";
import { useNarrow } from "./useNarrow";
import { useNoFiles } from "./useNoFiles";
import { useOpen } from "./useOpen";
import { useRead } from "./useRead";
import { useSession } from "./useSession";
import { useSessions } from "./useSessions";
import { useShortcuts } from "./useShortcuts";
import "./controls.css";
import "./App.css";

const SignIn = later(async () => (await import("./SignIn")).SignIn);
const ShortcutsDialog = later(async () => (await import("./ShortcutsDialog")).ShortcutsDialog);
const BriefingsDialog = later(async () => (await import("./BriefingsDialog")).BriefingsDialog);
const anyBriefing = async () => (await readBriefings({ limit: 1 })).items.length > 0;

export function App() {
  const who = useSession();
  // Another reader has other conversations: the page keeps nothing of the last reader's.
  return <Page key={who.count} who={who} />;
}

function Page({ who }: { who: ReturnType<typeof useSession> }) {
  const { session, askAgain } = who;
  // The page does not wait for the reader's identity, because nearly always the server accepts any caller.
  const isAllowed = session.state !== "refused";
  const { open, place, openConversation, openNew, settle } = useOpen();
  const conversations = useConversations(isAllowed);
  const agents = useAgents(isAllowed);
  const { deleted, remove, settle: settleDeletions } = useDeletion(conversations.readAgain);
  const current = open.at === "chat" ? open.conversationId : undefined;
  const signIn = (token: string) => {
    settleDeletions();
    return who.signIn(token);
  };
  const enter = (token: string, isClaiming?: boolean) => {
    settleDeletions();
    return who.enter(token, isClaiming);
  };
  const claim = () => who.claim().then(conversations.readAgain, () => showToast(words.shell.account.notClaimed));
  const signOut = () => {
    settleDeletions();
    openNew();
    who.signOut();
  };
  const [server] = useRead(true, readServer);
  const [hasBriefings, readBriefingsAgain] = useRead(isAllowed, anyBriefing);
  const sessions = useSessions(isAllowed, conversations.items.length);
  const { about, isMissing, readAgain } = useAbout(isAllowed ? current : undefined, conversations.items.find(({ id }) => id === current));

  const originId = about?.forked_conversation_id ?? undefined;
  const { about: origin } = useAbout(isAllowed ? originId : undefined, conversations.items.find(({ id }) => id === originId));

  const isNarrow = useNarrow();
  const [isBeside, setIsBeside] = useState(() => read("list") !== "hidden");
  const [isDrawerOpen, setIsDrawerOpen] = useState(false);
  /** The open conversation, if it waits for the reader. */
  const [openWaits, setOpenWaits] = useState<string>();
  const waiting = useMemo(
    () => (openWaits === undefined || conversations.waiting.has(openWaits) ? conversations.waiting : new Set([openWaits, ...conversations.waiting])),
    [openWaits, conversations.waiting],
  );
  const [dialog, setDialog] = useState<"shortcuts" | "sign in" | "briefings">();
  const isListShown = isNarrow ? isDrawerOpen : isBeside;

  const showList = (isShown: boolean) => {
    if (isNarrow) return setIsDrawerOpen(isShown);
    keep("list", isShown ? undefined : "hidden");
    setIsBeside(isShown);
  };
  useEffect(() => {
    if (!isNarrow) setIsDrawerOpen(false);
  }, [isNarrow]);

  const goTo = useCallback(
    (id: string | undefined, messageId?: string) => {
      setIsDrawerOpen(false);
      if (id === undefined) openNew();
      else openConversation(id, messageId);
    },
    [openNew, openConversation],
  );
  /**
   * Opens a conversation for a reader who will write next; a reader who steps through the list keeps the focus there.
   */
  const goToWrite = (id: string | undefined, messageId?: string) => {
    goTo(id, messageId);
    focusOnField();
  };
  const goToNew = () => goToWrite(undefined);
  const onDelete = (id: string, title: string) => {
    const wasOpen = id === current;
    if (wasOpen) openNew();
    remove(id, title, () => wasOpen && openConversation(id));
  };
  useEffect(() => focusOnField(), []);
  useNoFiles();
  const step = (by: 1 | -1) => {
    const shown = conversations.items.filter(({ id }) => !deleted.has(id));
    const other = neighbour(shown, current, by);
    if (other) goTo(other.id);
  };

  useShortcuts({
    newChat: goToNew,
    search: () => {
      flushSync(() => showList(true));
      focusOn("search");
    },
    next: () => step(1),
    previous: () => step(-1),
    list: () => showList(!isListShown),
    help: () => setDialog("shortcuts"),
  });

  const list = (
    <ConversationList
      conversations={conversations}
      deleted={deleted}
      current={current}
      waiting={waiting}
      sessions={sessions}
      onBriefings={hasBriefings ? () => setDialog("briefings") : undefined}
      onOpen={goToWrite}
      onNew={goToNew}
      onHide={() => showList(false)}
      onDelete={onDelete}
    >
      <Foot
        session={session}
        onSignIn={() => setDialog("sign in")}
        onClaim={() => void claim()}
        onSignOut={signOut}
        onShortcuts={() => setDialog("shortcuts")}
      />
    </ConversationList>
  );
  const head = { isListShown, onShowList: () => showList(true), onNew: goToNew };
  const isNowhere = open.at === "nowhere";
  const hasField = !isNowhere && !isMissing && session.state !== "refused";
  useEffect(() => {
    if (isNowhere || isMissing) document.title = pageTitle(undefined, false, waiting.size);
  }, [isNowhere, isMissing, waiting.size]);

  return (
    <>
      <a className="skip" href={hasField ? "#compose" : "#chat"}>
        {words.shell.skip}
      </a>
      <Caution warning={server?.warning} />
      <div className="page">
        {!isNarrow && isBeside && <div className="beside">{list}</div>}
        {isNarrow && isDrawerOpen && (
          <Dialog as="drawer" title={words.shell.list.name} onClose={() => setIsDrawerOpen(false)}>
            {list}
            {/* A reader cannot press a button outside of a modal dialog. */}
            <Toasts />
          </Dialog>
        )}
        {isNowhere || isMissing ? (
          <main className="chat" id="chat" tabIndex={-1}>
            <Header {...head} />
            <Nowhere {...(isNowhere ? words.shell.lost : words.shell.missing)} onNew={goToNew} />
          </main>
        ) : session.state === "refused" ? (
          <main className="chat" id="chat" tabIndex={-1} />
        ) : (
          <Conversation
            key={open.key}
            open={open}
            about={about}
            place={place}
            model={server?.model}
            waiting={waiting.size}
            origin={origin && { title: origin.title ?? words.shell.untitled, open: () => goTo(origin.id) }}
            agents={agents}
            isNarrow={isNarrow}
            onFork={goToWrite}
            onRename={(conversation, title) => void conversations.rename(conversation, title).then(readAgain)}
            onDelete={onDelete}
            onSettled={settle}
            onChanged={conversations.readAgain}
            onWaiting={setOpenWaits}
            onRefused={askAgain}
            {...head}
          />
        )}
      </div>
      {session.state === "refused" && (
        <SignIn
          why={session.hadToken ? words.shell.account.expired : words.shell.account.why}
          signIn={signIn}
          enter={enter}
          forget={session.mayBeAnonymous ? signOut : undefined}
        />
      )}
      {dialog === "sign in" && <SignIn why={words.shell.account.choose} signIn={signIn} enter={enter} onClose={() => setDialog(undefined)} />}
      {dialog === "shortcuts" && <ShortcutsDialog onClose={() => setDialog(undefined)} />}
      {dialog === "briefings" && (
        <BriefingsDialog
          onTalk={(id) => {
            setDialog(undefined);
            goToWrite(id);
          }}
          onClose={() => setDialog(undefined)}
          onChanged={readBriefingsAgain}
        />
      )}
      {!(isNarrow && isDrawerOpen) && <Toasts />}
    </>
  );
}

/** Where a focus would open an on-screen keyboard over the page, the page leaves the field alone. */
function focusOnField() {
  // React may not have rendered the field yet.
  if (matchMedia("(hover: hover)").matches) requestAnimationFrame(() => focusOn("compose"));
}

/** React must have rendered the target before. */
function focusOn(command: "compose" | "search") {
  document.querySelector<HTMLElement>(`[data-command=${command}]`)?.focus();
}
