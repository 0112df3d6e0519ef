// A panel beside the chat with the beginning of a file: CSV as a table, any other text as code. Nothing of it is executed.
import { useEffect, useState } from "react";

import type { FileRef } from "../../client/files";
import { words } from "../../i18n";
import { texts } from "../../i18n/previews";
import { CodeBlock } from "../../messages/markdown/Code";
import { Dialog } from "../../shell/controls/Dialog";
import { DownloadLink } from "../DownloadLink";
import { sizeOf } from "../size";
import { DataTable } from "./DataTable";
import { type PreviewKind, PROSE } from "./kind";
import { type Beginning, MOST_BYTES, readBeginning } from "./readBeginning";
import "../../messages/markdown/markdown.css";
import "../../shell/controls/panel.css";
import "./preview.css";

type Props = { file: FileRef; kind: PreviewKind; onClose(): void };

export function FilePreview({ file, kind, onClose }: Props) {
  const { beginning, isFailed, readAgain } = useBeginning(file);
  return (
    <Dialog as="panel" title={file.name} onClose={onClose}>
      <div className="preview file-preview">
        <p className="preview-facts">
          <span>{sizeOf(file.bytes)}</span>
          <DownloadLink file={file} className="button">
            {words.files.save}
          </DownloadLink>
        </p>
        {isFailed ? (
          <div className="preview-note" role="status">
            <p>{words.files.notRead}</p>
            <button type="button" className="button" onClick={readAgain}>
              {words.shell.retry}
            </button>
          </div>
        ) : !beginning ? (
          <div className="preview-loading" role="img" aria-label={texts.loading} />
        ) : kind.as === "table" ? (
          <DataTable name={file.name} {...beginning} rest={texts.download} />
        ) : (
          <>
            <div className="markdown preview-code" data-prose={kind.language === PROSE || undefined}>
              <CodeBlock code={beginning.text} language={kind.language === PROSE ? undefined : kind.language} />
            </div>
            {beginning.isCut && <p className="preview-note">{texts.cut(sizeOf(MOST_BYTES))} {texts.download}</p>}
          </>
        )}
      </div>
    </Dialog>
  );
}

function useBeginning(file: FileRef) {
  const [beginning, setBeginning] = useState<Beginning>();
  const [isFailed, setIsFailed] = useState(false);
  const [count, setCount] = useState(0);
  useEffect(() => {
    const left = new AbortController();
    setIsFailed(false);
    readBeginning(file, left.signal).then(setBeginning, () => left.signal.aborted || setIsFailed(true));
    return () => left.abort();
  }, [file.id, count]);
  return { beginning, isFailed, readAgain: () => setCount((before) => before + 1) };
}
