// Code: its language, a button that copies it, and its colours, which come when they are loaded.
import type { Element, ElementContent } from "hast";
import { type ReactNode, useEffect, useState } from "react";

import { words } from "../../i18n";
import { CopyButton } from "../CopyButton";
import { type Highlight, loadHighlight, loadedHighlight } from "./colour";

export function Code({ node, children }: { node?: Element; children: ReactNode }) {
  const code = node?.children.find((child) => child.type === "element");
  if (!code) return <pre>{children}</pre>;
  const text = textIn(code).replace(/\n$/, "");
  const language = languageOf(code);
  if (language === "math") {
    return (
      <pre className="formula" aria-label={words.message.formula} dir="ltr">
        {text}
      </pre>
    );
  }
  return (
    <div className="code" dir="ltr" data-bare={!language || undefined}>
      <div className="code-head">
        {language && <span>{language}</span>}
        <CopyButton text={() => text} label={words.message.copy} />
      </div>
      <pre role="group" aria-label={language ? words.message.codeIn(language) : words.message.code} tabIndex={0}>
        <code>{language ? <Coloured text={text} language={language} /> : text}</code>
      </pre>
    </div>
  );
}

/** Code that is longer is not coloured: nobody waits for the colours of a log. */
const LONGEST = 40_000;

function Coloured({ text, language }: { text: string; language: string }) {
  const highlight = useHighlight();
  if (!highlight || text.length > LONGEST) return text;
  return highlight(text, language)?.map(spanOf) ?? text;
}

function useHighlight(): Highlight | undefined {
  const [highlight, setHighlight] = useState<Highlight | undefined>(loadedHighlight);
  useEffect(() => {
    if (highlight) return;
    let isGone = false;
    // Without the colours' file, which the network may refuse, code is plain.
    loadHighlight().then((loaded) => isGone || setHighlight(() => loaded), () => undefined);
    return () => {
      isGone = true;
    };
  }, [highlight]);
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
