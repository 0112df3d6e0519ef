// The list of an answer's sources, and the panel with the source that the reader has opened.
import { texts } from "../i18n/knowledge";
import { PassageDialog } from "../knowledge/document/PassageDialog";
import type { Citation, Cited } from "./cited";
import { SourceLink } from "./markdown/Mark";
import "./Sources.css";

type Props = {
  cited: Cited;
  /** Whether the answer has ended; before that, its text would push the list on. */
  hasEnded: boolean;
  shown: Citation | undefined;
  show(citation: Citation | undefined): void;
};

export function Sources({ cited, hasEnded, shown, show }: Props) {
  return (
    <>
      {hasEnded && (
        <nav className="sources" aria-label={texts.sources}>
          <span aria-hidden="true">{texts.sources}</span>
          <ol role="list">
            {[...cited.byNumber.values()].map((citation) => (
              <li key={citation.number}>
                <SourceLink citation={citation} show={show}>
                  <span className="sources-number">{citation.number}</span>
                  <span className="sources-title" dir="auto">
                    {texts.source(citation.title, citation.page)}
                  </span>
                </SourceLink>
              </li>
            ))}
          </ol>
        </nav>
      )}
      {shown && <PassageDialog key={shown.number} documentId={shown.documentId} title={shown.title} page={shown.page} passage={shown} onClose={() => show(undefined)} />}
    </>
  );
}
