// The message field grows with its text, keeps the text over reloads, and knows when Enter belongs to an input method.
import { useEffect, useId, useLayoutEffect, useReducer, useRef, useState, type KeyboardEvent, type MouseEvent, type ReactNode, type RefObject } from "react";

import type { Chat, WaitingMode } from "../../chat/chat";
import { isTooLong, limitOf } from "../../client/refusals";
import { canSend, isNotSent } from "../../chat/state";
import type { FileRef } from "../../client/files";
import { AddFiles } from "../../files/AddFiles";
import { obstacleOf } from "../../files/tray";
import { UploadAnnouncer } from "../../files/UploadAnnouncer";
import { useTaker } from "../../files/useTransfers";
import { addTo, useDraftTray } from "../../files/useTray";
import { words } from "../../i18n";
import { isComposing } from "../../isComposing";
import { later } from "../../later";
import { breaksLines } from "../../messages/keys";
import { messageField, refocus, useRefocus } from "../../refocus";
import { isOfSend } from "./clicks";
import { beginning, draftAfter, draftIn, next, type Composing } from "./composing";
import { joined, tabDrafts } from "./drafts";
import { Icon } from "../controls/icons";
import { showToast } from "../controls/toasts";
import { useVoice } from "./voice";
import "./Composer.css";

// Most messages have no files.
const TrayFiles = later(async () => (await import("../../files/TrayFiles")).TrayFiles);

export type Suggestion = {
  text: string;
  files?: FileRef[];
  /** Whether the text comes back from the messages; then it joins the text in the field. */
  isTakenBack?: boolean;
};

type Props = {
  chat: Chat;
  /** The name of the stored draft. */
  draft: string;
  field: RefObject<HTMLTextAreaElement | null>;
  /** A suggested text, or one that its writer has taken back; each object puts its text into the field once. */
  suggestion?: Suggestion;
  /** Whether the field is locked while an answer is being made. */
  isLockable?: boolean;
  /** The elements below the text, at its beginning. */
  children?: ReactNode;
};

export function Composer({ chat, draft, field, suggestion, isLockable, children }: Props) {
  const [composing, happen] = useReducer(next, draft, (name) => beginning(tabDrafts.read(name), chat));
  const { text } = composing;
  const { tray, items } = useDraftTray(draft, chat);
  const obstacle = obstacleOf(items);
  const [isOver, setIsOver] = useState(false);
  const hint = useId();
  const sentAt = useRef(-Infinity);
  // Stop takes the place of Send.
  const stop = (event: MouseEvent) => isOfSend(event, sentAt.current) || chat.stop();
  const isBusy = chat.progress === "submitted" || chat.progress === "streaming";
  const isHeld = isBusy && isNotSent(chat);
  const isLocked = isBusy && isLockable === true;
  const isSendable = (canSend(chat.progress) || (chat.takesMore && !isLocked)) && (text.trim() !== "" || items.length > 0) && !obstacle;

  useEffect(() => happen({ is: "reported", unsent: chat.unsent }), [chat.unsent]);
  useKept(draft, draftIn(composing, chat));
  useLeft(draft, composing, chat);
  useShown(field, text);
  useHeight(field, text);
  const isTall = useTall(field, text) || Boolean(children) || items.length > 0;

  const write = (text: string) => happen({ is: "written", text });
  const voice = useVoice((heard) => write(text === "" || /\s$/.test(text) ? text + heard : `${text} ${heard}`));

  useEffect(() => {
    if (!suggestion) return;
    write(suggestion.isTakenBack ? joined(suggestion.text, text) : suggestion.text);
    tray.put(suggestion.files ?? []);
    field.current?.focus();
  }, [suggestion, field]);
  useUnlocked(field, isLocked);
  useEffect(() => {
    for (const refused of chat.posting.filter(({ state }) => state === "refused")) {
      happen({ is: "returned", text: refused.text });
      tray.put(refused.files ?? []);
      void chat.takeBack(refused);
      showToast(words.shell.composer.notPosted);
    }
  }, [chat.posting]);
  const add = (files: File[]) => addTo(tray, files);
  useTaker(isLocked ? undefined : { take: add, hover: setIsOver });

  useEffect(() => {
    const { problem } = chat;
    // Until the field has its text again, its writer has changed nothing.
    const refused = composing.unsent?.isUnderway === false ? composing.unsent.text : undefined;
    if (refused !== undefined && problem && isTooLong(problem) && fits(text, limitOf(problem), refused)) chat.dismiss();
  }, [chat, composing.unsent, text]);

  const send = (mode: WaitingMode = "steer") => {
    const said = text.trim();
    const { files } = tray;
    if (obstacle) showToast(wordsFor(obstacle));
    else if (isBusy && !isSendable && said !== "") showToast(words.shell.composer.waitForServer);
    if (!isSendable) return;
    if (isBusy) void chat.post(said, mode, files);
    else if (!chat.send(said, files)) return;
    happen({ is: "sent" });
    tray.drop(files);
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    const isAskedNext = event.ctrlKey || event.metaKey;
    if (breaksLines() && !isAskedNext) return;
    event.preventDefault();
    send(isAskedNext ? "enqueue" : "steer");
  };

  return (
    <form
      className="composer"
      aria-label={words.shell.composer.name}
      onSubmit={(event) => {
        event.preventDefault();
        sentAt.current = event.timeStamp;
        send();
      }}
    >
      <div className="composer-box" data-busy={isBusy || undefined} data-tall={isTall || undefined}>
        {items.length > 0 && <TrayFiles tray={tray} items={items} />}
        <textarea
          ref={field}
          id="compose"
          data-command="compose"
          rows={1}
          dir="auto"
          enterKeyHint={breaksLines() ? "enter" : "send"}
          disabled={isLocked}
          placeholder={words.shell.composer.placeholder}
          aria-label={words.shell.composer.name}
          aria-describedby={hint}
          onChange={(event) => write(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <AddFiles onFiles={add} isDisabled={isLocked} />
        {children}
        {voice.isPossible && (
          <button
            type="button"
            className="icon-button composer-voice"
            aria-pressed={voice.isListening}
            aria-label={voice.isListening ? words.shell.composer.voiceStop : words.shell.composer.voice}
            title={voice.isListening ? words.shell.composer.voiceStop : words.shell.composer.voice}
            onClick={voice.toggle}
          >
            <Icon name="voice" />
          </button>
        )}
        {isBusy && <StopButton name={isHeld ? words.shell.composer.takeBack : words.shell.composer.stop} stop={stop} isBusy />}
        {chat.progress === "waiting" && text.trim() === "" && items.length === 0 ? (
          <StopButton name={words.shell.composer.stop} stop={stop} />
        ) : (
          (!isBusy || isSendable || obstacle) && (
            <button
              type="submit"
              className="composer-send"
              disabled={!isSendable}
              aria-label={obstacle ? wordsFor(obstacle) : words.shell.composer.send}
              title={obstacle ? wordsFor(obstacle) : words.shell.composer.send}
            >
              <Icon name="send" />
            </button>
          )
        )}
        {isOver && <p className="composer-drop">{words.files.drop}</p>}
      </div>
      <UploadAnnouncer items={items} />
      <p id={hint} className="composer-hint" dir="auto" data-busy={isBusy || undefined}>
        {voice.isListening ? voice.guess || words.shell.composer.listening : obstacle ? wordsFor(obstacle) : isHeld ? "" : isLocked ? words.shell.composer.locked : isBusy ? (breaksLines() ? words.shell.composer.busyByTouch : words.shell.composer.busy) : hintWhile(chat, text)}
      </p>
    </form>
  );
}

function wordsFor(obstacle: "uploading" | "failed"): string {
  return obstacle === "uploading" ? words.files.wait : words.files.mend;
}

function StopButton({ name, stop, isBusy }: { name: string; stop(event: MouseEvent): void; isBusy?: boolean }) {
  // The button also disappears when the answer ends.
  const button = useRefocus<HTMLButtonElement>(messageField);
  return (
    <button
      ref={button}
      type="button"
      className="composer-send composer-stop"
      data-busy={isBusy}
      aria-label={name}
      title={name}
      onClick={stop}
    >
      <Icon name="stop" />
    </button>
  );
}

/** Whether a text is no longer too long; without a known limit, whether its writer has changed it. */
function fits(text: string, limit: number | undefined, refused: string): boolean {
  return limit === undefined ? text.trim() !== refused : new TextEncoder().encode(text.trim()).length <= limit;
}

function hintWhile({ progress }: Chat, text: string): string {
  if (progress !== "waiting") return "";
  return text.trim() === "" ? words.shell.composer.waiting : words.shell.composer.withdraws;
}

/**
 * Shows the text in the field. React would write the value of a controlled field into the document, too, and with each key
 * the browser would check every `:has()` of the page again.
 */
function useShown(field: RefObject<HTMLTextAreaElement | null>, text: string) {
  useLayoutEffect(() => {
    if (field.current && field.current.value !== text) field.current.value = text;
  }, [field, text]);
}

/** Returns the focus to the field that had it before the page locked the field. */
function useUnlocked(field: RefObject<HTMLTextAreaElement | null>, isLocked: boolean) {
  const wasLocked = useRef(false);
  useEffect(() => {
    if (wasLocked.current && !isLocked) refocus(() => field.current);
    wasLocked.current = isLocked;
  }, [field, isLocked]);
}

/** Stores the draft under its name; with a new name, the draft moves. */
function useKept(name: string, text: string) {
  const last = useRef(name);
  useEffect(() => {
    if (last.current !== name) tabDrafts.keep(last.current, "");
    last.current = name;
    tabDrafts.keep(name, text);
  }, [name, text]);
  useEffect(() => {
    addEventListener("storage", tabDrafts.yield);
    return () => removeEventListener("storage", tabDrafts.yield);
  }, []);
}

/** A message in flight when the reader leaves the chat stops being a draft as soon as the server has it. */
function useLeft(name: string, composing: Composing, chat: Chat) {
  const newest = useRef({ name, composing, chat });
  useLayoutEffect(() => {
    newest.current = { name, composing, chat };
  });
  useEffect(
    () => () => {
      const { name, composing, chat } = newest.current;
      const kept = draftIn(composing, chat);
      void chat.settled(chat.unsent?.isUnderway).then((left) => tabDrafts.replace(name, kept, draftAfter(composing.text, left)));
    },
    [],
  );
}

const growsByItself = CSS.supports("field-sizing", "content");

/** Makes the field as high as its text, where the browser cannot do that itself; the style sheet has the maximum. */
function useHeight(field: RefObject<HTMLTextAreaElement | null>, text: string) {
  useLayoutEffect(() => {
    const element = field.current;
    if (!element || growsByItself) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [field, text]);
}

/**
 * Whether the text has more than one line: then the buttons go below it. They stay there, because the text has more
 * room without them.
 */
function useTall(field: RefObject<HTMLTextAreaElement | null>, text: string): boolean {
  const [isTall, setTall] = useState(false);
  useLayoutEffect(() => {
    if (text === "" || !field.current) return setTall(false);
    const { lineHeight, paddingBlockStart, paddingBlockEnd } = getComputedStyle(field.current);
    const height = field.current.clientHeight - parseFloat(paddingBlockStart) - parseFloat(paddingBlockEnd);
    if (height > 1.5 * parseFloat(lineHeight)) setTall(true);
  }, [field, text]);
  return isTall;
}
