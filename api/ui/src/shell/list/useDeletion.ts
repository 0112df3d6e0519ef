// This hook deletes a conversation with an undo. The conversation leaves the list at once. The page sends the request
// when the time to undo is over, or when the reader leaves the page, and then tells the browser's other tabs.
import { Problem } from "holdfast-client/problem";
import { useCallback, useEffect, useRef, useState } from "react";

import { chatTabs } from "../../chat/tabs";
import { deleteConversation } from "../../client/server";
import { words } from "../../i18n";
import { messageField, refocus } from "../../refocus";
import { pathOf } from "../address";
import { tellDeleted } from "../conversationChanges";
import { showToast } from "../controls/toasts";

const UNDO_FOR_MS = 8_000;

export type Deleted = ReadonlyMap<string, (() => void) | undefined>;

export function useDeletion(onDeleted: () => void): {
  /** The conversations that the list must hide, each with the function that undoes its deletion as long as it waits. */
  deleted: Deleted;
  remove(id: string, title: string, onUndone?: () => void): void;
  /** Completes all pending deletions, while the page still has the current reader's token. */
  settle(): void;
} {
  const [deleted, setDeleted] = useState<Deleted>(new Map());
  /** The functions that end the wait, by id. */
  const waiting = useRef(new Map<string, () => void>());

  const show = useCallback((id: string) => {
    setDeleted((before) => new Map([...before].filter(([other]) => other !== id)));
  }, []);

  const remove = useCallback(
    (id: string, title: string, onUndone?: () => void) => {
      if (waiting.current.has(id)) return;
      const ask = async () => {
        waiting.current.delete(id);
        setDeleted((before) => new Map(before).set(id, undefined));
        try {
          await deleteOnce(id);
        } catch {
          show(id);
          return void showToast(words.shell.list.notDeleted(title));
        }
        tellAll(id);
        onDeleted();
      };
      const undo = () => {
        waiting.current.get(id)?.();
        waiting.current.delete(id);
        show(id);
        onUndone?.();
        refocus(() => document.querySelector<HTMLElement>(`.item a[href^="${pathOf(id)}"]`));
      };
      const timer = setTimeout(() => void ask(), UNDO_FOR_MS);
      const dismiss = showToast(words.shell.list.deleted(title), { label: words.shell.list.undo, run: undo }, UNDO_FOR_MS);
      waiting.current.set(id, () => (clearTimeout(timer), dismiss()));
      setDeleted((before) => new Map(before).set(id, undo));
      // The list has already focused its next conversation, if the reader deleted this one there.
      refocus(messageField);
    },
    [onDeleted, show],
  );

  const settle = useCallback(() => {
    for (const [id, end] of waiting.current) {
      end();
      void deleteOnce(id).catch(() => {});
      // The page does not live to see the answer.
      tellAll(id);
    }
    waiting.current.clear();
  }, []);
  useEffect(() => {
    window.addEventListener("pagehide", settle);
    return () => {
      window.removeEventListener("pagehide", settle);
      settle();
    };
  }, [settle]);

  return { deleted, remove, settle };
}

/** Another tab may have deleted it. */
async function deleteOnce(id: string): Promise<void> {
  await deleteConversation(id).catch((error: unknown) => {
    if (!(error instanceof Problem) || error.status !== 404) throw error;
  });
}

function tellAll(id: string): void {
  chatTabs.tell({ ids: [id], isDeleted: true });
  tellDeleted(id);
}
