// Deleting a conversation with a way back: it leaves the list at once, and the server is asked when the time to undo is over, or
// when the page is left.
import { useCallback, useEffect, useRef, useState } from "react";

import { deleteConversation } from "../client/server";
import { words } from "../i18n";
import { messageField, refocus } from "../refocus";
import { pathOf } from "./address";
import { showToast } from "./toasts";

const UNDO_FOR_MS = 8_000;

export function useDeletion(onDeleted: () => void): {
  /** The ids that are to be shown no more. */
  deleted: ReadonlySet<string>;
  remove(id: string, title: string, onUndone?: () => void): void;
  /** Undoes none of them any more: while one is still who one was. */
  settle(): void;
} {
  const [deleted, setDeleted] = useState<ReadonlySet<string>>(new Set());
  /** What ends the waiting, by id. */
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
      // The list's next conversation has it by now, if it was deleted there.
      refocus(messageField);
    },
    [onDeleted, show],
  );

  const settle = useCallback(() => {
    for (const [id, end] of waiting.current) {
      end();
      // `keepalive` lets the request outlive the page.
      void deleteConversation(id, { keepalive: true }).catch(() => {});
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
