// The search over the passages of a collection. Its hits lead to their places.
import { problemFrom } from "holdfast-client/problem";
import { useEffect, useId, useState } from "react";

import { type FoundPassage, searchCollection } from "../../client/knowledge";
import { texts } from "../../i18n/knowledge";
import { Icon } from "../../shell/controls/icons";
import { PageLink } from "../../workspace/PageLink";
import { documentPath } from "../paths";
import "../../workspace/search/Search.css";

const SEARCH_AFTER_MS = 300;
const MOST = 10;
const EXCERPT_CHARS = 400;

export function PassageSearch({ collectionId }: { collectionId: string }) {
  const [query, setQuery] = useState("");
  const found = usePassages(query.trim(), collectionId);
  const status = useId();
  const isEmpty = found && (found.failure !== undefined || found.passages.length === 0);
  return (
    <div className="search" role="search" aria-label={texts.search.label}>
      <div className="search-field">
        <Icon name="search" />
        <input
          className="field"
          type="search"
          dir="auto"
          maxLength={1000}
          placeholder={texts.search.label}
          aria-label={texts.search.label}
          aria-describedby={status}
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape" || query === "") return;
            event.preventDefault();
            event.stopPropagation();
            setQuery("");
          }}
        />
        {query !== "" && (
          <button type="button" className="icon-button" aria-label={texts.search.clear} title={texts.search.clear} onClick={() => setQuery("")}>
            <Icon name="close" />
          </button>
        )}
      </div>
      {found && found.passages.length > 0 && (
        <ol role="list" className="passages">
          {found.passages.map(({ id, chunk, title, page, start, end, text }) => (
            <li key={`${id} ${chunk}`} className="passage">
              <PageLink className="passage-title" to={documentPath(id, { start, end })}>
                <span dir="auto">{title}</span>
                {page !== undefined && <span className="passage-page">{texts.text.page(page)}</span>}
              </PageLink>
              <p className="passage-text" dir="auto">
                {excerptOf(text)}
              </p>
            </li>
          ))}
        </ol>
      )}
      <p id={status} role="status" className={isEmpty ? "search-status" : "unseen"}>
        {found && (found.failure ?? (found.passages.length === 0 ? texts.search.nothing(found.query) : texts.search.found(found.passages.length)))}
      </p>
    </div>
  );
}

function excerptOf(text: string): string {
  const plain = text.replace(/\s+/g, " ").trim();
  return plain.length > EXCERPT_CHARS ? `${plain.slice(0, EXCERPT_CHARS)}…` : plain;
}

/** Older passages stay until newer ones arrive. */
function usePassages(query: string, collectionId: string) {
  const [found, setFound] = useState<{ query: string; passages: FoundPassage[]; failure?: string }>();
  useEffect(() => {
    if (query === "") return setFound(undefined);
    const left = new AbortController();
    const timer = setTimeout(() => {
      searchCollection(collectionId, query, { limit: MOST, signal: left.signal }).then(
        ({ items }) => left.signal.aborted || setFound({ query, passages: items }),
        (error: unknown) => left.signal.aborted || setFound({ query, passages: [], failure: problemFrom(error).status === 429 ? texts.search.busy : texts.search.failed }),
      );
    }, SEARCH_AFTER_MS);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [query, collectionId]);
  return found;
}
