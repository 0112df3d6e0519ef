// A collection with its documents: the reader adds, searches, retries, cancels and deletes them.
import { type ChangeEvent, useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";

import { cancelRun, deleteDocument, type KnowledgeDocument, readCollection, readDocuments, retryDocument } from "../../client/knowledge";
import { useTaker } from "../../files/useTransfers";
import { words } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { refocus } from "../../refocus";
import { Icon } from "../../shell/controls/icons";
import { showToast } from "../../shell/controls/toasts";
import { useTitle } from "../../workspace/frame";
import { type Listed, withItem, without } from "../../workspace/listed";
import { useListed } from "../../workspace/useListed";
import { ConfirmDeletion } from "../ConfirmDeletion";
import type { Frame } from "../frame";
import { Gone } from "../Gone";
import { Rest } from "../Rest";
import { Top } from "../Top";
import { useKnown } from "../useKnown";
import { AdditionList } from "./AdditionList";
import { additionsOf } from "./additions";
import { DocumentItem } from "./DocumentItem";
import { PassageSearch } from "./PassageSearch";
import { useIngestions } from "./useIngestions";

const reason = ({ error }: KnowledgeDocument) => error?.message ?? "";

export function CollectionPage({ id, frame }: { id: string; frame: Frame }) {
  const known = useKnown(readCollection, id);
  const collection = known.value;
  useTitle(collection?.name, frame.waiting);
  return (
    <main className="chat workspace" id="chat" tabIndex={-1}>
      <Top frame={frame} />
      <div className="workspace-scroll">
        <div className="workspace-column">
          {collection && !known.isMissing ? (
            <>
              <h1 dir="auto">{collection.name}</h1>
              {collection.description && (
                <p className="workspace-about" dir="auto">
                  {collection.description}
                </p>
              )}
              <PassageSearch collectionId={id} />
              <Documents collectionId={id} />
            </>
          ) : (
            <Gone known={known} />
          )}
        </div>
      </div>
    </main>
  );
}

function Documents({ collectionId }: { collectionId: string }) {
  const read = useCallback((cursor: string | undefined) => readDocuments(collectionId, { cursor }), [collectionId]);
  const documents = useListed<KnowledgeDocument>(read);
  const { changes, readAgain } = documents;
  const [unwanted, setUnwanted] = useState<KnowledgeDocument>();
  const [isOver, setIsOver] = useState(false);
  const [said, setSaid] = useState("");
  const onChanged = useCallback(
    (document: KnowledgeDocument) => {
      changes.tell((listed) => (listed.items.some(({ id }) => id === document.id) ? withItem(listed, document) : listed));
      if (document.status === "ready") setSaid(texts.document.isReady(document.title));
      if (document.status === "failed") setSaid(texts.document.hasFailed(document.title, reason(document)));
    },
    [changes],
  );
  const steps = useIngestions(documents.items, onChanged, readAgain);

  const additions = additionsOf(collectionId);
  const items = useSyncExternalStore(additions.subscribe, () => additions.items);
  const taken = useSyncExternalStore(additions.subscribe, () => additions.taken);
  const seen = useRef(taken.length);
  const isRead = documents.next !== undefined;
  useEffect(() => {
    // The first page has the documents before.
    if (!isRead) return;
    taken.slice(seen.current).forEach((document) => changes.tell((listed) => (listed.items.some(({ id }) => id === document.id) ? listed : withItem(listed, document))));
    seen.current = taken.length;
  }, [taken, isRead, changes]);
  const add = (files: File[]) => additions.add(files);
  useTaker({ take: add, hover: setIsOver });

  const retry = async (document: KnowledgeDocument) => {
    const withDocument = (document: KnowledgeDocument) => (listed: Listed<KnowledgeDocument>) => withItem(listed, document);
    const queued = withDocument({ ...document, status: "queued", error: null, run_id: null });
    try {
      await changes.make(document.id, queued, async () => withDocument((await retryDocument(document.id)).document));
    } catch {
      showToast(texts.document.notRetried(document.title));
    }
  };
  const stop = async ({ run_id, title }: KnowledgeDocument) => {
    // The end of the run changes the document.
    if (run_id !== null) await cancelRun(run_id).catch(() => showToast(texts.document.notStopped(title)));
    void readAgain();
  };
  const remove = async ({ id, title }: KnowledgeDocument) => {
    setUnwanted(undefined);
    try {
      await deleteDocument(id);
      changes.tell((listed) => without(listed, id));
    } catch {
      showToast(texts.document.notDeleted(title));
    }
    refocus(() => document.getElementById("chat"));
  };

  return (
    <section aria-label={texts.document.list} className="documents">
      <div className="workspace-bar">
        <AddDocuments onFiles={add} />
        <span className="documents-hint">{texts.document.dropHint}</span>
      </div>
      <AdditionList additions={additions} items={items} />
      <ul role="list" className="document-list" aria-label={texts.document.list}>
        {documents.items.map((document) => (
          <DocumentItem key={document.id} document={document} step={steps.get(document.id)} onRetry={() => void retry(document)} onStop={() => void stop(document)} onDelete={() => setUnwanted(document)} />
        ))}
      </ul>
      <Rest reading={documents}>{items.length === 0 && <p className="rest">{texts.document.none}</p>}</Rest>
      <p className="unseen" aria-live="polite">
        {said}
      </p>
      {isOver && <p className="documents-drop">{words.files.drop}</p>}
      {unwanted && <ConfirmDeletion title={texts.document.confirm(unwanted.title)} text={texts.document.confirmText} onConfirm={() => void remove(unwanted)} onClose={() => setUnwanted(undefined)} />}
    </section>
  );
}

function AddDocuments({ onFiles }: { onFiles(files: File[]): void }) {
  const picker = useRef<HTMLInputElement>(null);
  const onChange = ({ target }: ChangeEvent<HTMLInputElement>) => {
    const files = [...(target.files ?? [])];
    // Without this, a file could not be chosen twice.
    target.value = "";
    if (files.length > 0) onFiles(files);
  };
  return (
    <>
      <input ref={picker} type="file" multiple hidden onChange={onChange} />
      <button type="button" className="button" data-main="" onClick={() => picker.current?.click()}>
        <Icon name="add" />
        {texts.document.add}
      </button>
    </>
  );
}
