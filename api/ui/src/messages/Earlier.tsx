// Stands before the first message of a conversation whose earlier messages the page has not read: it reads them as soon as
// the reader comes near.
import { useEffect, useRef } from "react";

import type { Chat } from "../chat/chat";
import { EARLIER } from "../chat/earlier";
import { words } from "../i18n";
import { Spinner } from "./icons";

export function Earlier({ earlier, readEarlier }: Pick<Chat, "earlier" | "readEarlier">) {
  const line = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (earlier !== "more" || !line.current) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && readEarlier(EARLIER), { root: line.current.closest("[role=log]"), rootMargin: "1500px" });
    observer.observe(line.current);
    return () => observer.disconnect();
  }, [earlier, readEarlier]);
  return (
    <div className="earlier" ref={line} role="status">
      <p className="on-paper">{words.list.earlierOnPaper}</p>
      {earlier === "failed" ? (
        <>
          {words.list.earlierFailed}{" "}
          <button type="button" className="quiet-button" onClick={() => readEarlier(EARLIER)}>
            {words.trouble.retry}
          </button>
        </>
      ) : (
        <>
          <Spinner />
          <span className="unseen">{words.list.earlier}</span>
        </>
      )}
    </div>
  );
}
