// The beginning of a CSV document as a table; the reader may see it as the text that answers quote.
import { useEffect, useState } from "react";

import { readText } from "../../client/knowledge";
import { DataTable } from "../../files/preview/DataTable";
import { words } from "../../i18n";
import { texts } from "../../i18n/knowledge";
import { texts as previews } from "../../i18n/previews";
import { DocumentText } from "./DocumentText";
import "./DocumentText.css";

/** The page reads so many characters for the table. */
const MOST = 200_000;

export function DocumentTable({ id, title, chars }: { id: string; title: string; chars: number }) {
  const [isText, setIsText] = useState(false);
  const [text, setText] = useState<string>();
  const [isFailed, setIsFailed] = useState(false);
  const [count, setCount] = useState(0);
  const end = Math.min(chars, MOST);
  useEffect(() => {
    const left = new AbortController();
    setIsFailed(false);
    readText(id, 0, end, { signal: left.signal }).then(setText, () => left.signal.aborted || setIsFailed(true));
    return () => left.abort();
  }, [id, end, count]);
  return (
    <>
      <div className="document-table" data-text={isText || undefined}>
        <button type="button" className="button" onClick={() => setIsText(!isText)}>
          {isText ? previews.asTable : previews.asText}
        </button>
        {!isText && text !== undefined && <DataTable name={title} text={text} isCut={end < chars} rest={previews.inText} />}
        {!isText && text === undefined && !isFailed && <div className="rest rest-loading" role="img" aria-label={texts.loading} />}
        {!isText && isFailed && (
          <div className="rest" role="status">
            <p>{texts.unreachable}</p>
            <button type="button" className="button" onClick={() => setCount((before) => before + 1)}>
              {words.shell.retry}
            </button>
          </div>
        )}
      </div>
      {isText && <DocumentText id={id} title={title} chars={chars} isCode />}
    </>
  );
}
