// The page shows this in place of a collection or a document that it cannot show.
import { words } from "../i18n";
import { texts } from "../i18n/knowledge";
import { PageLink } from "../workspace/PageLink";
import { COLLECTIONS_PATH } from "./address";
import type { Known } from "./useKnown";

export function Gone({ known: { isMissing, isFailed, readAgain } }: { known: Known<unknown> }) {
  if (isMissing) {
    return (
      <div className="rest" role="status">
        <h1>{texts.collection.missing}</h1>
        <p>{texts.collection.missingText}</p>
        <PageLink className="button" to={COLLECTIONS_PATH}>
          {texts.title}
        </PageLink>
      </div>
    );
  }
  if (!isFailed) return <div className="rest rest-loading" role="img" aria-label={texts.loading} />;
  return (
    <div className="rest" role="status">
      <p>{texts.unreachable}</p>
      <button type="button" className="button" onClick={readAgain}>
        {words.shell.retry}
      </button>
    </div>
  );
}
