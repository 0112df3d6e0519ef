// A mark such as `[1]` with a source is a small link to the cited place; any other mark stays text. Both are equally
// wide, so that the text does not move when the source arrives after its mark, and both are copied as `[1]`.
import { type MouseEvent, type ReactNode, useContext } from "react";

import { texts } from "../../i18n/knowledge";
import { documentPath } from "../../knowledge/paths";
import { Cited, type Citation } from "../cited";

export function Mark({ children }: { children?: ReactNode }) {
  const cited = useContext(Cited);
  const citation = cited?.byNumber.get(Number(String(children).slice(1, -1)));
  if (!cited || !citation) return <>{children}</>;
  return (
    <SourceLink citation={citation} className="cite" label={`${String(children)} ${texts.source(citation.title, citation.page)}`} show={cited.show}>
      {children}
    </SourceLink>
  );
}

type LinkProps = {
  citation: Citation;
  className?: string;
  /** The accessible name, where it is not the content. */
  label?: string;
  show(citation: Citation): void;
  children: ReactNode;
};

/** Shows the cited place beside the chat. Ctrl, Command, Shift and the middle button open another tab or window. */
export function SourceLink({ citation, className, label, show, children }: LinkProps) {
  const onClick = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    show(citation);
  };
  return (
    <a className={className} href={documentPath(citation.documentId, citation)} title={texts.source(citation.title, citation.page)} aria-label={label} onClick={onClick}>
      {children}
    </a>
  );
}
