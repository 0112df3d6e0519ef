// A reader may paste or drop files: the page says that it does not take them, and the browser does not open them.
import { useEffect } from "react";

import { words } from "../i18n";
import { showToast } from "./controls/toasts";

type Transfer = Pick<DataTransfer, "types">;

/** Whether the transfer has files and no text. Programs also copy a picture of a text along with it. */
export function bringsOnlyFiles({ types }: Transfer): boolean {
  return types.includes("Files") && !types.includes("text/plain");
}

export function useNoFiles(): void {
  useEffect(() => {
    const refuse = (event: Event, transfer: Transfer | null) => {
      if (!transfer || !bringsOnlyFiles(transfer)) return false;
      event.preventDefault();
      return true;
    };
    const onPaste = (event: ClipboardEvent) => refuse(event, event.clipboardData) && showToast(words.shell.composer.noFiles);
    const onDrop = (event: DragEvent) => refuse(event, event.dataTransfer) && showToast(words.shell.composer.noFiles);
    // Without this handler, the browser opens a dropped file instead of the page.
    const onDragOver = (event: DragEvent) => refuse(event, event.dataTransfer);
    window.addEventListener("paste", onPaste);
    window.addEventListener("drop", onDrop);
    window.addEventListener("dragover", onDragOver);
    return () => {
      window.removeEventListener("paste", onPaste);
      window.removeEventListener("drop", onDrop);
      window.removeEventListener("dragover", onDragOver);
    };
  }, []);
}
