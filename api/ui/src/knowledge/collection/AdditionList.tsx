// Shows the files on their way into a collection: the first ones, and how many follow.
import { reasonOf, canHelp } from "../../files/announcement";
import { sizeOf } from "../../files/size";
import { words } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { Icon } from "../../shell/controls/icons";
import type { Addition, Additions } from "./additions";

/** A reader who drops a thousand files sees so many of them at once. */
const MOST = 20;

export function AdditionList({ additions, items }: { additions: Additions; items: readonly Addition[] }) {
  const isHeld = items.some(({ state }) => state === "held");
  return (
    <>
      {items.length > 0 && (
        <ul role="list" className="document-list" aria-label={texts.addition.list}>
          {items.slice(0, MOST).map((item) => (
            <AdditionItem key={item.key} additions={additions} item={item} />
          ))}
        </ul>
      )}
      <p role="status" className={isHeld || items.length > MOST ? "documents-status" : "unseen"}>
        {isHeld ? texts.addition.held : items.length > 0 && texts.addition.left(items.length)}
      </p>
    </>
  );
}

function AdditionItem({ additions, item: { key, name, bytes, state, received, problem } }: { additions: Additions; item: Addition }) {
  const isUploading = state === "uploading";
  const note = state === "failed" ? `${texts.addition.failed} · ${reasonOf(words.files, { problem })}` : state === "held" ? texts.document.state.queued : texts.addition[state];
  const removeLabel = state === "failed" ? words.files.remove(name) : words.files.cancel(name);
  return (
    <li className="document" data-state={state}>
      <div className="document-facts">
        <span className="document-title" dir="auto">
          {name}
        </span>
        <span className="document-note">{isUploading && received > 0 ? `${sizeOf(received)} / ${sizeOf(bytes)}` : note}</span>
        {isUploading && <progress className="document-progress" value={received} max={Math.max(1, bytes)} aria-label={words.files.progress(name)} />}
      </div>
      {state === "failed" && canHelp(problem) && problem?.code !== "document_type_refused" && (
        <button type="button" className="icon-button" aria-label={words.files.retry(name)} title={words.files.retry(name)} onClick={() => additions.retry(key)}>
          <Icon name="again" />
        </button>
      )}
      <button type="button" className="icon-button" aria-label={removeLabel} title={removeLabel} onClick={() => additions.remove(key)}>
        <Icon name="close" />
      </button>
    </li>
  );
}
