// The line below the header that says which collections the chat answers from. A change counts for the next message.
import { useEffect, useState } from "react";

import type { Chat } from "../chat/chat";
import { type Collection, createConversation, readCollections, setKnowledge } from "../client/knowledge";
import { texts } from "../i18n/knowledge";
import { Dialog } from "../shell/controls/Dialog";
import { Icon } from "../shell/controls/icons";
import { conversationChanges } from "../shell/conversationChanges";
import { showToast } from "../shell/controls/toasts";
import { follow } from "../visit";
import { COLLECTIONS_PATH } from "./address";
import "../shell/context/ContextBar.css";

/** The server takes so many collections of a conversation. */
const MOST = 16;

/** The reader chooses from so many collections. */
const LISTED = 200;

type Props = {
  chat: Chat;
  /** The collections of the conversation, as the page has read it. */
  known: readonly string[] | undefined;
};

export function KnowledgeBar({ chat: { conversationId, progress, beginWith }, known }: Props) {
  const [collections, setCollections] = useState<Collection[]>();
  const [chosen, setChosen] = useState<readonly string[]>();
  const [isChoosing, setIsChoosing] = useState(false);
  const ids = chosen ?? known ?? [];
  useEffect(() => {
    let isOver = false;
    readCollections({ limit: LISTED }).then(
      ({ items }) => isOver || setCollections(items),
      () => isOver || setCollections([]),
    );
    return () => {
      isOver = true;
    };
  }, []);

  const choose = async (next: readonly string[]) => {
    setIsChoosing(false);
    setChosen(next);
    // A message names no collections, so the conversation exists before the first one.
    const make = async (agent_id: string | undefined) => (await createConversation({ agent_id, knowledge: next })).id;
    if (conversationId === undefined) return beginWith(next.length > 0 ? make : undefined);
    const change = { id: conversationId, fields: { knowledge: [...next] } };
    try {
      await conversationChanges.make(conversationId, change, async () => (await setKnowledge(conversationId, next), change));
    } catch {
      // A later choice stays.
      setChosen((newest) => (newest === next ? undefined : newest));
      showToast(texts.choice.notChanged);
    }
  };

  const names = ids.flatMap((id) => collections?.find((collection) => collection.id === id)?.name ?? []);
  const label = ids.length === 0 ? texts.choice.none : texts.choice.chosen(names.length === ids.length ? names.join(", ") : texts.choice.count(ids.length));
  // The server has not named the conversation of a message in flight yet.
  const isLocked = conversationId === undefined && progress !== "idle";
  return (
    <div className="context-bar">
      <button type="button" className="menu-button" aria-haspopup="dialog" disabled={isLocked} onClick={() => setIsChoosing(true)}>
        <Icon name="knowledge" />
        <span dir="auto">{label}</span>
        <Icon name="down" />
      </button>
      {isChoosing && <Choice collections={collections ?? []} chosen={ids} onChoose={(next) => void choose(next)} onClose={() => setIsChoosing(false)} />}
    </div>
  );
}

type ChoiceProps = { collections: readonly Collection[]; chosen: readonly string[]; onChoose(ids: readonly string[]): void; onClose(): void };

function Choice({ collections, chosen, onChoose, onClose }: ChoiceProps) {
  const [ids, setIds] = useState(() => chosen.filter((id) => collections.some((collection) => collection.id === id)));
  const isFull = ids.length >= MOST;
  return (
    <Dialog title={texts.choice.title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onChoose(ids);
        }}
      >
        <p className="choice-about">{isFull ? texts.choice.most(MOST) : texts.choice.about}</p>
        <ul role="list" className="choice-list">
          {collections.map(({ id, name }) => {
            const isChosen = ids.includes(id);
            return (
              <li key={id}>
                <label className="choice-item">
                  <input type="checkbox" checked={isChosen} disabled={isFull && !isChosen} onChange={() => setIds(isChosen ? ids.filter((other) => other !== id) : [...ids, id])} />
                  <span dir="auto">{name}</span>
                </label>
              </li>
            );
          })}
        </ul>
        <div className="choice-foot">
          <a href={COLLECTIONS_PATH} onClick={(event) => follow(event, COLLECTIONS_PATH)}>
            {texts.choice.manage}
          </a>
          <button type="submit" className="button" data-main="">
            {texts.choice.use}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
