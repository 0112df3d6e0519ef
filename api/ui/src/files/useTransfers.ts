// A reader may paste or drop files anywhere on the page. The open chat takes them; without one, the page says that it
// does not, and the browser does not open them.
import { useEffect, useLayoutEffect, useRef } from "react";

import { words } from "../i18n";
import { showToast } from "../shell/controls/toasts";

type Transfer = Pick<DataTransfer, "types" | "getData" | "files">;

interface Taker {
  take(files: File[]): void;
  /** Files are over the page, or no longer. */
  hover(isOver: boolean): void;
}

/** The message field of the open chat. */
let taker: Taker | undefined;

/**
 * Whether the transfer has files and no text of its own. Programs also copy a picture of a text along with it, and file
 * managers the names of the files.
 */
export function bringsOnlyFiles(transfer: Transfer): boolean {
  const { types } = transfer;
  return types.includes("Files") && (!types.includes("text/plain") || namesItsFiles(transfer));
}

/** Whether each line of the text names one of the files, also by its path. */
function namesItsFiles(transfer: Transfer): boolean {
  if (transfer.types.some((type) => type === "text/html" || type === "text/rtf")) return false;
  const names = new Set([...transfer.files].map(({ name }) => name.normalize()));
  const lines = transfer.getData("text/plain").split(/[\r\n]+/).filter((line) => line !== "");
  return lines.length > 0 && lines.every((line) => names.has(line.normalize()) || names.has(nameIn(line).normalize()));
}

function nameIn(path: string): string {
  const name = path.split(/[/\\]/).at(-1)!;
  try {
    return path.startsWith("file:") ? decodeURIComponent(name) : name;
  } catch {
    // A percent sign begins no valid escape.
    return name;
  }
}

/** A browser brings a folder as a file without readable content. */
export function contentOf({ items }: DataTransfer): { files: File[]; hasFolder: boolean } {
  const brought = [...items].filter(({ kind }) => kind === "file");
  const files = brought.filter((item) => item.webkitGetAsEntry?.()?.isDirectory !== true);
  return { files: files.flatMap((item) => item.getAsFile() ?? []), hasFolder: files.length < brought.length };
}

export function useTransfers(): void {
  useEffect(() => {
    const refuse = (event: Event, transfer: Transfer | null): transfer is DataTransfer => {
      if (!transfer || !bringsOnlyFiles(transfer)) return false;
      event.preventDefault();
      return true;
    };
    const bring = (transfer: DataTransfer) => {
      const { files, hasFolder } = contentOf(transfer);
      taker?.hover(false);
      // A dialog is above the field.
      const isCovered = document.querySelector("dialog[open]") !== null;
      if (!taker || isCovered) return void showToast(words.files.notHere);
      // A browser may bring nothing for a folder.
      if (hasFolder || files.length === 0) showToast(words.files.noFolder);
      if (files.length > 0) taker.take(files);
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
