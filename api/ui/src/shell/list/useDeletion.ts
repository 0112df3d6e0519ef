// This hook deletes a conversation with an undo. The conversation leaves the list at once. The page sends the request
// when the time to undo is over, or when the reader leaves the page.
import { useCallback, useEffect, useRef, useState } from "react";

import { deleteConversation } from "../../client/server";
import { words } from "../../i18n";
import { messageField, refocus } from "../../refocus";
import { pathOf } from "../address";
import { showToast } from "../controls/toasts";

const UNDO_FOR_MS = 8_000;

export function useDeletion(onDeleted: () => void): {
  /** The ids that the list must hide. */
  deleted: ReadonlySet<string>;
  remove(id: string, title: string, onUndone?: () => void): void;
  /** Completes all pending deletions, while the page still has the current reader's token. */
  settle(): void;
} {
  const [deleted, setDeleted] = useState<ReadonlySet<string>>(new Set());
  /** The functions that end the wait, by id. */
  const waiting = useRef(new Map<string, () => void>());

  const show = useCallback((id: string) => {
    setDeleted((before) => new Set([...before].filter((other) => other !== id)));
  }, []);

  const remove = useCallback(
    (id: string, title: string, onUndone?: () => void) => {
      if (waiting.current.has(id)) return;
      setDeleted((before) => new Set(before).add(id));
      const ask = () => {
        waiting.current.delete(id);
        deleteConversation(id).then(onDeleted, () => {
          show(id);
          showToast(words.shell.list.notDeleted(title));
        });
      };
      const undo = () => {
        waiting.current.get(id)?.();
        waiting.current.delete(id);
        show(id);
        onUndone?.();
        refocus(() => document.querySelector<HTMLElement>(`.item a[href^="${pathOf(id)}"]`));
      };
      const timer = setTimeout(ask, UNDO_FOR_MS);
      const dismiss = showToast(words.shell.list.deleted(title), { label: words.shell.list.undo, run: undo }, UNDO_FOR_MS);
      waiting.current.set(id, () => (clearTimeout(timer), dismiss()));
      // The list has already focused its next conversation, if the reader deleted this one there.
      refocus(messageField);
    },
    [onDeleted, show],
  );

  const settle = useCallback(() => {
    for (const [id, end] of waiting.current) {
      end();
      void deleteConversation(id).catch(() => {});
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
