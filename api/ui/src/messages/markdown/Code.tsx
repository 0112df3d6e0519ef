// Shows code: its language, a button that copies it, and its colours after they have loaded.
import type { Element, ElementContent } from "hast";
import { type ReactNode, useEffect, useMemo, useState } from "react";

import { words } from "../../i18n";
import { CopyButton } from "../CopyButton";
import { type Highlight, loadHighlight, loadedHighlight } from "./colour";
import { usePaced } from "./pace";
import { Selectable } from "./Selectable";

/** Shows the code that markdown has found. */
export function Code({ node, children }: { node?: Element; children: ReactNode }) {
  const code = node?.children.find((child) => child.type === "element");
  if (!code) return <pre>{children}</pre>;
  return <CodeBlock code={textIn(code).replace(/\n$/, "")} language={languageOf(code)} />;
}

/** `isOpen` says whether the model is still writing it. */
export function CodeBlock({ code, language, isOpen = false }: { code: string; language?: string; isOpen?: boolean }) {
  if (language === "math") {
    return (
      <pre className="formula" aria-label={words.message.formula} dir="ltr">
        {code}
      </pre>
    );
  }
  return (
    <div className="code" dir="ltr" data-bare={!language || undefined}>
      <div className="code-head">
        {language && <span>{language}</span>}
        <CopyButton text={() => code} label={words.message.copy} />
      </div>
      <pre role="group" aria-label={language ? words.message.codeIn(language) : words.message.code} tabIndex={0}>
        <Lines text={code} language={language} isOpen={isOpen} />
      </pre>
    </div>
  );
}

/** The page does not colour longer code: no reader waits for the colours of a log. */
const LONGEST = 40_000;

/**
 * After rendering all lines, the page renders only the newest ones, without colours, for this multiple of the time that
 * it took.
 */
const REST = 25;

function Lines({ text, language, isOpen }: { text: string; language?: string; isOpen: boolean }) {
  const highlight = useHighlight(language !== undefined);
  // An incomplete line would change its colours with every character.
  const lines = isOpen ? text.slice(0, text.lastIndexOf("\n") + 1) : text;
  const paced = usePaced(lines, REST);
  const start = isOpen ? paced : text;
  const coloured = useMemo(
    () => (highlight && language && start.length <= LONGEST ? highlight(start, language)?.map(spanOf) : undefined),
    [highlight, start, language],
  );
  // The run may have taken the text back and written another.
  if (!text.startsWith(start)) return <code>{text}</code>;
  // The lines are in two blocks, so that the browser does not lay out the first again with every character of the
  // second.
  return (
    <Selectable as="code">
      <span>{coloured ?? start}</span>
      <span>{text.slice(start.length)}</span>
    </Selectable>
  );
}

function useHighlight(isWanted: boolean): Highlight | undefined {
  const [highlight, setHighlight] = useState<Highlight | undefined>(loadedHighlight);
  useEffect(() => {
    if (highlight || !isWanted) return;
    let isGone = false;
    // Without the file of the colours, which the network may refuse, code is plain.
    loadHighlight().then((loaded) => isGone || setHighlight(() => loaded), () => undefined);
    return () => {
      isGone = true;
    };
  }, [highlight, isWanted]);
  return highlight;
}

function spanOf(node: ElementContent, index: number): ReactNode {
  if (node.type === "text") return node.value;
  if (node.type !== "element") return undefined;
  const classes = node.properties.className;
  return (
    <span key={index} className={Array.isArray(classes) ? classes.join(" ") : undefined}>
      {node.children.map(spanOf)}
    </span>
  );
}

function textIn(node: ElementContent): string {
  if (node.type === "text") return node.value;
  return node.type === "element" ? node.children.map(textIn).join("") : "";
}

function languageOf(code: Element): string | undefined {
  const classes = code.properties.className;
  const name = Array.isArray(classes) ? classes.find((name) => `${name}`.startsWith("language-")) : undefined;
  return name ? `${name}`.slice("language-".length) : undefined;
}
