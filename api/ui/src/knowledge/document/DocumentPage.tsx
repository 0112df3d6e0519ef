// The page of one document: its facts and its text, at the place that the address names.
import { readCollection, readDocument, type KnowledgeDocument } from "../../client/knowledge";
import { previewKind, PROSE } from "../../files/preview/kind";
import { sizeOf } from "../../files/size";
import { locale } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { useTitle } from "../../workspace/frame";
import { collectionPath, type Passage } from "../paths";
import type { Frame } from "../frame";
import { Gone } from "../Gone";
import { Top } from "../Top";
import { type Known, useKnown } from "../useKnown";
import { DocumentTable } from "./DocumentTable";
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
export function TextOf({ document: { id, title, chars, error, media_type }, passage }: { document: KnowledgeDocument; passage?: Passage }) {
  if (chars === null || chars === 0) {
    return (
      <p className="rest document-head" role="status" dir="auto">
        {error?.message ?? texts.text.none}
      </p>
    );
  }
  const kind = previewKind({ name: title, mediaType: media_type });
  // A passage is marked in the text.
  if (kind?.as === "table" && !passage) return <DocumentTable key={id} id={id} title={title} chars={chars} />;
  return (
    <>
      {passage && passage.start >= chars && (
        <p className="rest document-head" role="status">
          {texts.text.moved}
        </p>
      )}
      <DocumentText id={id} title={title} chars={chars} passage={passage} isCode={kind?.as === "code" && kind.language !== PROSE} />
    </>
  );
}

function factsOf({ status, chars, passages, bytes, title, media_type }: KnowledgeDocument): string {
  const kind = previewKind({ name: title, mediaType: media_type });
  const language = kind?.as === "code" && kind.language !== PROSE ? [kind.language] : [];
  const read = chars === null ? [] : [texts.text.characters(chars.toLocaleString(locale))];
  const found = status === "ready" ? [texts.document.passages(passages)] : [texts.document.state[status]];
  return [...found, ...language, ...read, sizeOf(bytes)].join(" · ");
}
