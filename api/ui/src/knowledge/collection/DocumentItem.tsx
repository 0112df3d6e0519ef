// One document of a collection: its status, and what the reader can do with it.
import type { KnowledgeDocument } from "../../client/knowledge";
import { sizeOf } from "../../files/size";
import { words } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { useRefocus } from "../../refocus";
import { Icon } from "../../shell/controls/icons";
import { PageLink } from "../../workspace/PageLink";
import { documentPath } from "../paths";
import type { Step } from "./ingestion";
import { isUnfinished } from "./useIngestions";

type Props = {
  document: KnowledgeDocument;
  /** The newest step of its ingestion. */
  step?: Step;
  onRetry(): void;
  onStop(): void;
  onDelete(): void;
};

export function DocumentItem({ document, step, onRetry, onStop, onDelete }: Props) {
  const { id, title, status, error, run_id, bytes, passages } = document;
  const isGoingOn = isUnfinished(document);
  const shown = isGoingOn && step ? "processing" : status;
  const deleteButton = useRefocus<HTMLButtonElement>(() => window.document.getElementById("chat"));
  const atDelete = () => deleteButton.current;
  return (
    <li className="document" data-state={shown}>
      <div className="document-facts">
        <PageLink className="document-title" to={documentPath(id)} dir="auto">
          {title}
        </PageLink>
        <span className="document-note">
          <span className="document-state">{texts.document.state[shown]}</span>
          {shown === "processing" && step && ` · ${texts.document.stage[step.stage] ?? ""}`}
          {shown === "failed" && error && <span dir="auto">{` · ${error.message}`}</span>}
          {shown === "ready" && ` · ${texts.document.passages(passages)}`}
          {shown === "ready" && <VectorNote document={document} />}
          {` · ${sizeOf(bytes)}`}
        </span>
        {shown === "processing" && <progress className="document-progress" value={step?.done} max={step ? Math.max(1, step.total) : undefined} aria-label={texts.document.progress(title)} />}
      </div>
      {(status === "failed" || status === "cancelled") && run_id !== null && (
        <ActionButton name={texts.document.retry(title)} text={words.shell.retry} place={atDelete} onClick={onRetry} />
      )}
      {isGoingOn && run_id !== null && <ActionButton name={texts.document.stop(title)} icon="stop" place={atDelete} onClick={onStop} />}
      <button ref={deleteButton} type="button" className="icon-button" aria-label={texts.document.delete(title)} title={texts.document.delete(title)} onClick={onDelete}>
        <Icon name="delete" />
      </button>
    </li>
  );
}

/** Without a provider of vectors no document has any, and nothing is missing. */
function VectorNote({ document: { vectors, vectors_error } }: { document: KnowledgeDocument }) {
  if (vectors === "none" && vectors_error === null) return null;
  const reason = vectors_error && texts.document.because(vectors_error.message);
  return <span dir="auto">{` · ${texts.document.vectors[vectors]}${reason ?? ""}`}</span>;
}

type Action = { name: string; text?: string; icon?: "stop"; place(): HTMLElement | null; onClick(): void };

/** This button may disappear by itself, with the focus. */
function ActionButton({ name, text, icon, place, onClick }: Action) {
  const button = useRefocus<HTMLButtonElement>(place);
  return (
    <button ref={button} type="button" className={text ? "button" : "icon-button"} aria-label={name} title={name} onClick={onClick}>
      {icon && <Icon name={icon} />}
      {text}
    </button>
  );
}
