// A link that saves a file. With the reader's token, the page fetches the bytes itself.
import type { MouseEvent, ReactNode } from "react";

import { type FileRef, addressOf, readFile } from "../client/files";
import { save } from "../client/save";
import { token } from "../client/token";
import { words } from "../i18n";
import { showToast } from "../shell/controls/toasts";

type Props = { file: FileRef; className: string; children: ReactNode };

export function DownloadLink({ file, className, children }: Props) {
  const onClick = (event: MouseEvent) => {
    if (token() === undefined) return;
    event.preventDefault();
    readFile(file).then((bytes) => save(bytes, file.name)).catch(() => showToast(words.files.notRead));
  };
  return (
    <a className={className} href={addressOf(file)} download={file.name} aria-label={words.files.download(file.name)} title={words.files.download(file.name)} onClick={onClick}>
      {children}
    </a>
  );
}
