// This follows the last item of a list: a button for more, or what is missing.
import type { ReactNode } from "react";

import { words } from "../i18n";
import { texts } from "../i18n/knowledge";
import type { Reading } from "../workspace/useListed";

type Props = {
  reading: Pick<Reading<{ id: string }>, "items" | "next" | "progress" | "readMore" | "readAgain">;
  /** The words of an empty list. */
  children?: ReactNode;
};

export function Rest({ reading: { items, next, progress, readMore, readAgain }, children }: Props) {
  if (progress === "failed") {
    return (
      <div className="rest" role="status">
        <p>{texts.unreachable}</p>
        <button type="button" className="button" onClick={items.length > 0 && next ? readMore : readAgain}>
          {words.shell.retry}
        </button>
      </div>
    );
  }
  if (progress === "loading") return <div className="rest rest-loading" role="img" aria-label={texts.loading} />;
  if (next) {
    return (
      <div className="rest">
        <button type="button" className="button" onClick={readMore}>
          {texts.more}
        </button>
      </div>
    );
  }
  return items.length === 0 && <>{children}</>;
}
