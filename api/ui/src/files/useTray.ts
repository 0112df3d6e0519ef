// These hooks give a view the files on a tray.
import { useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";

import type { Chat, Posting, Unsent } from "../chat/chat";
import type { FileRef } from "../client/files";
import { words } from "../i18n";
import { showToast } from "../shell/controls/toasts";
import { dropFiles, keepFiles, renameTray, trayOf } from "./drafts";
import { type Item, MOST_FILES, type Tray, readyOf } from "./tray";

export function useItems(tray: Tray): readonly Item[] {
  return useSyncExternalStore(tray.subscribe, () => tray.items);
}

/** Puts files on the tray, and says if they are too many. */
export function addTo(tray: Tray, files: readonly File[]): void {
  if (tray.add(files) > 0) showToast(words.files.tooMany(MOST_FILES));
}

/** Returns the tray of a draft. Its files return with a message that the server does not have, and leave with one that it has. */
export function useDraftTray(draft: string, chat: Chat): { tray: Tray; items: readonly Item[] } {
  const [tray] = useState(() => trayOf(draft, underwayOf(chat)));
  const items = useItems(tray);
  useReturned(tray, chat.unsent);

  const last = useRef(draft);
  useEffect(() => {
    if (last.current !== draft) {
      renameTray(last.current, draft);
      keepFiles(last.current, []);
    }
    last.current = draft;
    keepFiles(draft, [...underwayOf(chat), ...readyOf(items)]);
  }, [draft, items, chat.unsent, chat.posting]);

  const newest = useRef({ draft, chat });
  useLayoutEffect(() => {
    newest.current = { draft, chat };
  });
  // The files of the messages in flight when the reader leaves the chat stop being a draft as soon as the server has them.
  useEffect(
    () => () => {
      const { draft, chat } = newest.current;
      const files = underwayOf(chat);
      if (files.length > 0) void chat.settled(chat.unsent?.isUnderway).then((left) => dropFiles(draft, files.filter(({ id }) => !left.some((unsent) => unsent.files?.some((file) => file.id === id)))));
    },
    [],
  );
  return { tray, items };
}

function useReturned(tray: Tray, unsent: Unsent | undefined): void {
  const before = useRef<FileRef[]>(undefined);
  useEffect(() => {
    const refused = unsent && !unsent.isUnderway && isOfField(unsent) ? (unsent.files ?? []) : undefined;
    if (refused && !before.current) tray.put(refused);
    if (before.current && !refused && (!unsent || isOfField(unsent))) tray.drop(before.current);
    before.current = refused;
  }, [tray, unsent]);
}

const isOfField = ({ text, instead }: Unsent) => text !== undefined && instead === undefined;

function underwayOf({ unsent, posting }: { unsent?: Unsent; posting: Posting[] }): FileRef[] {
  return [...(unsent?.isUnderway && isOfField(unsent) ? [unsent] : []), ...posting].flatMap(({ files }) => files ?? []);
}
