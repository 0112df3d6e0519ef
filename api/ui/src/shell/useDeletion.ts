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
} {
  const [deleted, setDeleted] = useState<ReadonlySet<string>>(new Set());
  const waiting = useRef(new Map<string, ReturnType<typeof setTimeout>>());

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
        clearTimeout(waiting.current.get(id));
        waiting.current.delete(id);
        show(id);
        onUndone?.();
        refocus(() => document.querySelector<HTMLElement>(`.item a[href="${pathOf(id)}"]`));
      };
      waiting.current.set(id, setTimeout(ask, UNDO_FOR_MS));
      showToast(words.shell.list.deleted(title), { label: words.shell.list.undo, run: undo }, UNDO_FOR_MS);
      // The list's next conversation has it by now, if it was deleted there.
      refocus(messageField);
    },
    [onDeleted, show],
  );

  useEffect(() => {
    const askForAll = () => {
      for (const [id, timer] of waiting.current) {
        clearTimeout(timer);
        // `keepalive` lets the request outlive the page.
        void deleteConversation(id, { keepalive: true }).catch(() => {});
      }
      waiting.current.clear();
    };
    window.addEventListener("pagehide", askForAll);
    return () => window.removeEventListener("pagehide", askForAll);
  }, []);

  return { deleted, remove };
}
