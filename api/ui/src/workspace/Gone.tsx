// The page shows this in place of a project or an entity that it cannot show.
import { words } from "../i18n";
import { texts } from "../i18n/workspace";
import { PROJECTS_PATH } from "./address";
import { PageLink } from "./PageLink";
import type { Known } from "./useEntity";

export function Gone({ known: { isMissing, isFailed, readAgain } }: { known: Known }) {
  if (isMissing) {
    return (
      <div className="rest" role="status">
        <h1>{texts.project.missing}</h1>
        <p>{texts.project.missingText}</p>
        <PageLink className="button" to={PROJECTS_PATH}>
          {texts.projects}
        </PageLink>
      </div>
    );
  }
  if (!isFailed) return <div className="rest rest-loading" role="img" aria-label={texts.list.loading} />;
  return (
    <div className="rest" role="status">
      <p>{texts.list.unreachable}</p>
      <button type="button" className="button" onClick={readAgain}>
        {words.shell.retry}
      </button>
    </div>
  );
}
