// This follows the last item of a list: it reads more when it comes near, and says what is missing.
import { type ReactNode, useEffect, useRef } from "react";

import { words } from "../../i18n";
import { texts } from "../../i18n/workspace";
import type { Reading } from "../useListed";

type Props = {
  reading: Pick<Reading<{ id: string }>, "items" | "next" | "progress" | "readMore" | "readAgain">;
  /** The words of an empty list. */
  children?: ReactNode;
};

export function Rest({ reading: { items, next, progress, readMore, readAgain }, children }: Props) {
  if (progress === "failed") {
    return (
      <div className="rest" role="status">
        <p>{texts.list.unreachable}</p>
        <button type="button" className="button" onClick={items.length > 0 && next ? readMore : readAgain}>
          {words.shell.retry}
        </button>
      </div>
    );
  }
  if (progress === "loading") return <div className="rest rest-loading" role="img" aria-label={texts.list.loading} />;
  if (next) return <End key={next} onReached={readMore} />;
  return items.length === 0 && <>{children}</>;
}

/** Reads more some screens before a reader sees the end; a reader without a pointer has the button. */
function End({ onReached }: { onReached(): void }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!element.current) return;
    // Only the scrolling element itself, as the root, lets the margin reach beyond it.
    const root = element.current.closest(".workspace-scroll");
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && onReached(), { root, rootMargin: "1600px 0px" });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [onReached]);
  return (
    <div ref={element} className="rest">
      <button type="button" className="button" onClick={onReached}>
        {texts.list.more}
      </button>
    </div>
  );
}
