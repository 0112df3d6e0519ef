// An answer's text. It is cut into blocks, of which only those that have changed are drawn again; nothing in it is trusted.
import { memo, useId, useMemo } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remend from "remend";

import { words } from "../../i18n";
import { allowed } from "./allowed";
import { blocksOf, hasDefinitions, withoutDangling } from "./blocks";
import { Code, CodeBlock } from "./Code";
import { codeIn } from "./fence";
import { formulas } from "./formula";
import { gfm } from "./gfm";
import { Image, Link, Table, Task } from "./inline";
import { NOTE } from "./links";
import { withMathKept } from "./math";
import { usePaced } from "./pace";
import { tableIn } from "./table";
import { directed, htmlAsText, labelled, lowered } from "./tree";
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

/** Of a table that is drawn in parts, within another one. */
const rows: Components = { ...components, table: ({ children }) => <>{children}</> };
const furtherRows: Components = { ...rows, thead: () => null };

/** Half of what the model is writing is completed, so that it is not seen to turn from signs into what they mean. */
const COMPLETION = { katex: false, inlineKatex: false, linkMode: "text-only", images: false, htmlTags: false, comparisonOperators: false } as const;

/** What can grow long has a way of its own, on which that costs little. */
const Block = memo(function Block({ text, name }: { text: string; name: string }) {
  const code = codeIn(text);
  if (code) return <CodeBlock {...code} />;
  const table = tableIn(text);
  if (!table) return <Drawn text={text} name={name} as={components} />;
  return (
    <Table>
      {table.map((part, index) => (
        <Drawn key={index} text={part} name={name} as={index === 0 ? rows : furtherRows} />
      ))}
    </Table>
  );
});

const Drawn = memo(function Drawn({ text, name, as }: { text: string; name: string; as: Components }) {
  return (
    <ReactMarkdown
      remarkPlugins={[gfm, htmlAsText]}
      rehypePlugins={[[rehypeSanitize, allowed], [labelled, { name }], directed, lowered, formulas]}
      remarkRehypeOptions={{ clobberPrefix: name, footnoteLabel: words.message.footnotes, footnoteLabelTagName: "h3", footnoteBackLabel: words.message.backToText }}
      // Addresses are judged where they are linked, because text must stay where a link may not.
      urlTransform={(address) => address}
      components={as}
    >
      {withMathKept(text)}
    </ReactMarkdown>
  );
});

export function Markdown({ text, isStreaming = false }: { text: string; isStreaming?: boolean }) {
  const id = useId();
  // Drawing may lag behind what comes, rather than hold up the reader's scrolling and typing.
  const paced = usePaced(text, 1);
  const shown = isStreaming ? paced : text;
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
  return [...blocks.slice(0, -1), ...blocks.slice(-1).map(completed)];
}

function completed(last: string): string {
  if (codeIn(last)) return last;
  // A row of a table ends with its line.
  const at = tableIn(last) ? last.lastIndexOf("\n") + 1 : 0;
  return last.slice(0, at) + remend(last.slice(at), COMPLETION);
}

/** What refers to another block can only be drawn together with it. */
function settled(text: string): string[] {
  return hasDefinitions(text) ? [text] : blocksOf(text);
}
