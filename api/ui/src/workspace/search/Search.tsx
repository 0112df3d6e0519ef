// The search over the workspace, or over one project. Its hits are links, or choices of the element around it.
import { useEffect, useId, useState } from "react";

import { type Hit, searchWorkspace } from "../../client/workspace";
import { texts } from "../../i18n/workspace";
import { Icon } from "../../shell/controls/icons";
import { entityPath } from "../address";
import { stateText } from "../controls/StateChoice";
import { PageLink } from "../PageLink";
import "./Search.css";

const SEARCH_AFTER_MS = 250;
const MOST = 20;

type Props = {
  projectId?: string;
  /** Chooses a hit; without it, hits are links. */
  onChoose?: (hit: Hit) => void;
  isFocused?: boolean;
};

export function Search({ projectId, onChoose, isFocused }: Props) {
  const [query, setQuery] = useState("");
  const found = useHits(query.trim(), projectId);
  const label = projectId === undefined ? texts.search.label : texts.search.inProject;
  const status = useId();
  return (
    <div className="search" role={onChoose ? undefined : "search"} aria-label={onChoose ? undefined : label}>
      <div className="search-field">
        <Icon name="search" />
        <input
          className="field"
          type="search"
          dir="auto"
          maxLength={200}
          autoFocus={isFocused}
          placeholder={label}
          aria-label={label}
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
      {found && found.hits.length > 0 && (
        <ul role="list" className="hits">
          {found.hits.map((hit) => (
            <li key={hit.id}>
              {onChoose ? (
                <button type="button" className="hit" onClick={() => onChoose(hit)}>
                  <HitText hit={hit} />
                </button>
              ) : (
                <PageLink className="hit" to={entityPath(hit.kind, hit.id, hit.project_id ?? undefined)}>
                  <HitText hit={hit} />
                </PageLink>
              )}
            </li>
          ))}
        </ul>
      )}
      <p id={status} role="status" className={found && (found.isFailed || found.hits.length === 0) ? "search-status" : "unseen"}>
        {found && (found.isFailed ? texts.search.failed : found.hits.length === 0 ? texts.search.nothing(found.query) : texts.search.found(found.hits.length))}
      </p>
    </div>
  );
}

function HitText({ hit }: { hit: Hit }) {
  return (
    <>
      <span className="kind">{texts.kind[hit.kind] ?? hit.kind}</span>
      <span className="hit-name" dir="auto">
        {hit.name}
      </span>
      <span className="hit-state">{stateText(hit.state)}</span>
    </>
  );
}

/** Older hits stay until newer ones arrive. */
function useHits(query: string, projectId: string | undefined) {
  const [found, setFound] = useState<{ query: string; hits: Hit[]; isFailed?: boolean }>();
  useEffect(() => {
    if (query === "") return setFound(undefined);
    const left = new AbortController();
    const timer = setTimeout(() => {
      searchWorkspace(query, { project_id: projectId, limit: MOST, signal: left.signal }).then(
        ({ items }) => left.signal.aborted || setFound({ query, hits: items }),
        () => left.signal.aborted || setFound({ query, hits: [], isFailed: true }),
      );
    }, SEARCH_AFTER_MS);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [query, projectId]);
  return found;
}
