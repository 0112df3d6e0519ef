// The page of one document: its facts and its text, at the place that the address names.
import { readCollection, readDocument, type KnowledgeDocument } from "../../client/knowledge";
import { sizeOf } from "../../files/size";
import { locale } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { useTitle } from "../../workspace/frame";
import { collectionPath, type Passage } from "../paths";
import type { Frame } from "../frame";
import { Gone } from "../Gone";
import { Top } from "../Top";
import { type Known, useKnown } from "../useKnown";
import { DocumentText } from "./DocumentText";

type Props = { id: string; passage?: Passage; frame: Frame };

export function DocumentPage({ id, passage, frame }: Props) {
  const known = useKnown(readDocument, id);
  const document = known.value;
  useTitle(document?.title, frame.waiting);
  return (
    <main className="chat workspace" id="chat" tabIndex={-1}>
      {document ? <TopOf collectionId={document.collection_id} frame={frame} /> : <Top frame={frame} />}
      {document && !known.isMissing ? (
        <>
          <div className="document-head">
            <h1 dir="auto">{document.title}</h1>
            <p className="document-note">{factsOf(document)}</p>
          </div>
          <TextOf document={document} passage={passage} />
        </>
      ) : (
        <div className="workspace-scroll">
          <Gone known={known} />
        </div>
      )}
    </main>
  );
}

function TopOf({ collectionId, frame }: { collectionId: string; frame: Frame }) {
  const { value }: Known<{ name: string }> = useKnown(readCollection, collectionId);
  return <Top frame={frame} above={value && { name: value.name, to: collectionPath(collectionId) }} />;
}

/** Shows the text, or why there is none. */
export function TextOf({ document: { id, title, chars, error }, passage }: { document: KnowledgeDocument; passage?: Passage }) {
  if (chars === null || chars === 0) {
    return (
      <p className="rest document-head" role="status" dir="auto">
        {error?.message ?? texts.text.none}
      </p>
    );
  }
  return (
    <>
      {passage && passage.start >= chars && (
        <p className="rest document-head" role="status">
          {texts.text.moved}
        </p>
      )}
      <DocumentText id={id} title={title} chars={chars} passage={passage} />
    </>
  );
}

function factsOf({ status, chars, passages, bytes }: KnowledgeDocument): string {
  const read = chars === null ? [] : [texts.text.characters(chars.toLocaleString(locale))];
  const found = status === "ready" ? [texts.document.passages(passages)] : [texts.document.state[status]];
  return [...found, ...read, sizeOf(bytes)].join(" · ");
}
