// A panel beside the chat with the text of a cited document, at the passage.
import { readDocument } from "../../client/knowledge";
import { texts } from "../../i18n/knowledge";
import { Dialog } from "../../shell/controls/Dialog";
import { PageLink } from "../../workspace/PageLink";
import { documentPath, type Passage } from "../paths";
import { Gone } from "../Gone";
import { useKnown } from "../useKnown";
import { TextOf } from "./DocumentPage";
import "../../shell/controls/controls.css";
import "../../shell/controls/panel.css";
import "../../workspace/workspace.css";
import "../knowledge.css";

type Props = { documentId: string; title: string; page?: number; passage: Passage; onClose(): void };

export function PassageDialog({ documentId, title, page, passage, onClose }: Props) {
  const known = useKnown(readDocument, documentId);
  return (
    <Dialog as="panel" title={title} onClose={onClose}>
      <p className="passage-facts">
        {page !== undefined && <span>{texts.text.page(page)}</span>}
        <PageLink to={documentPath(documentId, passage)}>{texts.text.whole}</PageLink>
      </p>
      {known.value && !known.isMissing ? <TextOf document={known.value} passage={passage} /> : <Gone known={known} />}
    </Dialog>
  );
}
