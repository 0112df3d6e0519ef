// This hook renames conversations. A title that the server did not get stays for another try.
import { useCallback, useRef, useState } from "react";

import { type Conversation, renameConversation } from "../../client/server";
import { words } from "../../i18n";
import { conversationChanges } from "../conversationChanges";
import { showToast } from "../controls/toasts";

const NOT_RENAMED_FOR_MS = 8_000;

export interface Renaming {
  /** The titles that the reader has typed and the server does not have, by conversation. */
  unsaved: ReadonlyMap<string, string>;
  /** An empty title removes the title. */
  rename(conversation: Conversation, title: string): Promise<void>;
}

export function useRenaming(): Renaming {
  const [unsaved, setUnsaved] = useState<ReadonlyMap<string, string>>(new Map());
  /** The newest title of each conversation that the reader has typed. */
  const newest = useRef(new Map<string, object>());
  const rename = useCallback(async (conversation: Conversation, title: string): Promise<void> => {
    const { id } = conversation;
    const mine = {};
    newest.current.set(id, mine);
    setUnsaved((now) => new Map([...now].filter(([other]) => other !== id)));
    const after = title.trim() === "" ? null : title.trim();
    if (after === conversation.title) return;
    try {
      await conversationChanges.make(id, { id, fields: { title: after } }, async () => ({ id, fields: { title: (await renameConversation(id, after)).title } }));
    } catch {
      // The reader has typed another title since.
      if (newest.current.get(id) !== mine) return;
      setUnsaved((now) => new Map(now).set(id, title));
      showToast(words.shell.list.notRenamed, { label: words.shell.retry, run: () => void rename(conversation, title) }, NOT_RENAMED_FOR_MS);
    }
  }, []);
  return { unsaved, rename };
}
