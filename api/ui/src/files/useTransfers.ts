// A reader may paste or drop files anywhere on the page. The open chat takes them; without one, the page says that it
// does not, and the browser does not open them.
import { useEffect, useLayoutEffect, useRef } from "react";

import { words } from "../i18n";
import { showToast } from "../shell/controls/toasts";

type Transfer = Pick<DataTransfer, "types">;

interface Taker {
  take(files: File[]): void;
  /** Files are over the page, or no longer. */
  hover(isOver: boolean): void;
}

/** The message field of the open chat. */
let taker: Taker | undefined;

/** Whether the transfer has files and no text. Programs also copy a picture of a text along with it. */
export function bringsOnlyFiles({ types }: Transfer): boolean {
  return types.includes("Files") && !types.includes("text/plain");
}

export function useTransfers(): void {
  useEffect(() => {
    const refuse = (event: Event, transfer: Transfer | null): transfer is DataTransfer => {
      if (!transfer || !bringsOnlyFiles(transfer)) return false;
      event.preventDefault();
      return true;
    };
    const bring = ({ files }: DataTransfer) => {
      taker?.hover(false);
      // A dialog is above the field.
      const isCovered = document.querySelector("dialog[open]") !== null;
      // A folder brings no file.
      if (!taker || isCovered || files.length === 0) showToast(words.files.notHere);
      else taker.take([...files]);
    };
    const onPaste = (event: ClipboardEvent) => refuse(event, event.clipboardData) && bring(event.clipboardData!);
    const onDrop = (event: DragEvent) => refuse(event, event.dataTransfer) && bring(event.dataTransfer!);
    // Without this handler, the browser opens a dropped file instead of the page.
    const onDragOver = (event: DragEvent) => refuse(event, event.dataTransfer) && taker?.hover(true);
    const onDragLeave = (event: DragEvent) => event.relatedTarget === null && taker?.hover(false);
    window.addEventListener("paste", onPaste);
    window.addEventListener("drop", onDrop);
    window.addEventListener("dragover", onDragOver);
    window.addEventListener("dragleave", onDragLeave);
    return () => {
      window.removeEventListener("paste", onPaste);
      window.removeEventListener("drop", onDrop);
      window.removeEventListener("dragover", onDragOver);
      window.removeEventListener("dragleave", onDragLeave);
    };
  }, []);
}

/** As long as the caller is on the page, it takes the files; without a taker, it takes none. */
export function useTaker(newest: Taker | undefined): void {
  const current = useRef(newest);
  useLayoutEffect(() => {
    current.current = newest;
  });
  const isTaking = newest !== undefined;
  useEffect(() => {
    if (!isTaking) return;
    const own: Taker = { take: (files) => current.current?.take(files), hover: (isOver) => current.current?.hover(isOver) };
    const before = taker;
    taker = own;
    return () => {
      if (taker === own) taker = before;
    };
  }, [isTaking]);
}
