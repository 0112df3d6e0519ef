// An answer's text. It is cut into blocks, of which only those that have changed are drawn again; nothing in it is trusted.
import { memo, useDeferredValue, useId, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remend from "remend";

import { words } from "../../i18n";
import { allowed } from "./allowed";
import { blocksOf, hasDefinitions, withoutDangling } from "./blocks";
import { Code } from "./Code";
import { formulas } from "./formula";
import { gfm } from "./gfm";
import { Image, Link, Table, Task } from "./inline";
import { NOTE } from "./links";
import { withMathKept } from "./math";
import { directed, htmlAsText, lowered } from "./tree";
import "./markdown.css";

const components: Components = {
  a: ({ href, children, id, "aria-describedby": describedBy }) => (
    <Link address={href} id={id} describedBy={describedBy}>
      {children}
    </Link>
  ),
  img: ({ src, alt }) => <Image address={typeof src === "string" ? src : undefined} alt={alt} />,
  pre: ({ node, children }) => <Code node={node}>{children}</Code>,
  table: ({ children }) => <Table>{children}</Table>,
  input: ({ checked }) => <Task isDone={checked === true} />,
};

/** Half of what the model is writing is completed, so that it is not seen to turn from signs into what they mean. */
const COMPLETION = { katex: false, inlineKatex: false, linkMode: "text-only", images: false, htmlTags: false, comparisonOperators: false } as const;

const Block = memo(function Block({ text, name }: { text: string; name: string }) {
  return (
    <ReactMarkdown
      remarkPlugins={[gfm, htmlAsText]}
      rehypePlugins={[[rehypeSanitize, allowed], directed, lowered, formulas]}
      remarkRehypeOptions={{ clobberPrefix: name, footnoteLabel: words.message.footnotes, footnoteLabelTagName: "h3", footnoteBackLabel: words.message.backToText }}
      // Addresses are judged where they are linked, because text must stay where a link may not.
      urlTransform={(address) => address}
      components={components}
    >
      {withMathKept(text)}
    </ReactMarkdown>
  );
});

export function Markdown({ text, isStreaming = false }: { text: string; isStreaming?: boolean }) {
  const id = useId();
  // Drawing may lag behind what comes, rather than hold up the reader's scrolling and typing.
  const shown = useDeferredValue(text);
  const blocks = useMemo(() => (isStreaming ? growing(shown) : settled(shown)), [shown, isStreaming]);
  return (
    <div className="markdown" data-streaming={isStreaming || undefined}>
      {blocks.map((block, index) => (
        <Block key={index} text={block} name={NOTE + id} />
      ))}
    </div>
  );
}

function growing(text: string): string[] {
  const blocks = blocksOf(withoutDangling(text));
  return [...blocks.slice(0, -1), ...blocks.slice(-1).map((last) => remend(last, COMPLETION))];
}

/** What refers to another block can only be drawn together with it. */
function settled(text: string): string[] {
  return hasDefinitions(text) ? [text] : blocksOf(text);
}
