// Shows the files of a message, or of an answer's tools: pictures as thumbnails that open, other files with their facts and a link.
import { useRef, useState } from "react";

import { type FileRef, isPicture } from "../client/files";
import { words } from "../i18n";
import { later } from "../later";
import { Dialog } from "../shell/controls/Dialog";
import { Icon } from "../shell/controls/icons";
import { DownloadLink } from "./DownloadLink";
import { kindOf, sizeOf } from "./size";
import { previewKind } from "./preview/kind";
import { useAddress, useDeleted } from "./useAddress";
import "./files.css";

const FilePreview = later(async () => (await import("./preview/FilePreview")).FilePreview);

/** `label` names the files of an answer, which stand at its side. */
export function MessageFiles({ files, label }: { files: readonly FileRef[]; label?: string }) {
  return (
    <ul role="list" className="message-files" data-of-answer={label !== undefined || undefined} aria-label={label ?? words.files.list}>
      {files.map((file) => (
        <li key={file.id}>{isPicture(file) ? <Picture file={file} /> : <Document file={file} />}</li>
      ))}
    </ul>
  );
}

function Picture({ file }: { file: FileRef }) {
  const button = useRef<HTMLButtonElement>(null);
  const { address, isDeleted, onError } = useAddress(file, button);
  const [isOpen, setOpen] = useState(false);
  if (isDeleted) return <Deleted file={file} />;
  return (
    <>
      <button type="button" ref={button} className="picture" aria-label={words.files.open(file.name)} aria-haspopup="dialog" title={file.name} onClick={() => setOpen(true)}>
        <img src={address} alt={file.name} loading="lazy" draggable={false} onError={onError} />
      </button>
      {isOpen && (
        <Dialog as="picture" title={file.name} onClose={() => setOpen(false)}>
          <img className="picture-whole" src={address} alt={file.name} />
          <p className="picture-foot">
            <span>{sizeOf(file.bytes)}</span>
            <DownloadLink file={file} className="button">
              {words.files.save}
            </DownloadLink>
          </p>
        </Dialog>
      )}
    </>
  );
}

function Document({ file }: { file: FileRef }) {
  const isDeleted = useDeleted(file);
  const [isOpen, setOpen] = useState(false);
  if (isDeleted) return <Deleted file={file} />;
  const kind = previewKind(file);
  return (
    <div className="file">
      <span className="file-sign" aria-hidden="true">
        {kindOf(file)}
      </span>
      <span className="file-facts">
        {kind ? (
          <button type="button" className="file-name file-open" dir="auto" aria-label={words.files.open(file.name)} aria-haspopup="dialog" title={file.name} onClick={() => setOpen(true)}>
            {file.name}
          </button>
        ) : (
          <span className="file-name" dir="auto" title={file.name}>
            {file.name}
          </span>
        )}
        <span className="file-note">
          {kindOf(file)} · {sizeOf(file.bytes)}
        </span>
      </span>
      {kind && isOpen && <FilePreview file={file} kind={kind} onClose={() => setOpen(false)} />}
      <DownloadLink file={file} className="icon-button">
        <Icon name="save" />
      </DownloadLink>
    </div>
  );
}

/** The message keeps the name of a file that its owner has deleted. */
function Deleted({ file }: { file: FileRef }) {
  return (
    <div className="file" data-state="deleted">
      <span className="file-facts">
        <span className="file-name" dir="auto">
          {file.name}
        </span>
        <span className="file-note">{words.files.deleted}</span>
      </span>
    </div>
  );
}
