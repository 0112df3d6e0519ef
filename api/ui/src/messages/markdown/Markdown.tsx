// Renders an answer's text. It splits the text into blocks, of which React renders only the changed ones; it trusts no
// part of the text.
import { createContext, memo, useContext, useId, useMemo } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remend from "remend";

import { words } from "../../i18n";
import { allowed } from "./allowed";
import { blocksOf, hasDefinitions, withoutDangling, withoutHalfMark } from "./blocks";
import { Code, CodeBlock } from "./Code";
import { codeIn } from "./fence";
import { formulas } from "./formula";
import { gfm } from "./gfm";
import { Image, Link, Table, Task } from "./inline";
import { NOTE } from "./links";
import { withMathKept } from "./math";
import { usePaced } from "./pace";
import { Selectable } from "./Selectable";
import { tableIn } from "./table";
import { directed, htmlAsText, labelled, linesKept, lowered } from "./tree";
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

/** These render a part of a table, inside the table. */
const rows: Components = { ...components, table: ({ children }) => <>{children}</> };
const furtherRows: Components = { ...rows, thead: () => null };

/**
 * The page completes the half-written markdown of the model, so that the reader does not see signs turn into
 * formatting.
 */
const COMPLETION = { katex: false, inlineKatex: false, linkMode: "text-only", images: false, htmlTags: false, comparisonOperators: false, singleTilde: false } as const;

/** Code and tables can grow long, so each has its own renderer that makes growth cheap. */
const Block = memo(function Block({ text, ...rest }: { text: string; name: string; isDocument: boolean }) {
  const code = codeIn(text);
  if (code) return <CodeBlock {...code} />;
  const table = tableIn(text);
  if (!table) return <Drawn text={text} {...rest} as={components} />;
  return (
    <Table>
      {table.map((part, index) => (
        <Drawn key={index} text={part} {...rest} as={index === 0 ? rows : furtherRows} />
      ))}
    </Table>
  );
});

/** The page draws the marks of an answer with these, if the answer has sources. */
export interface Marking {
  plugins: NonNullable<Options["rehypePlugins"]>;
  components: Components;
}

export const Marking = createContext<Marking | undefined>(undefined);

const Drawn = memo(function Drawn({ text, name, isDocument, as }: { text: string; name: string; isDocument: boolean; as: Components }) {
  const marking = useContext(Marking);
  return (
    <ReactMarkdown
      remarkPlugins={isDocument ? [gfm, htmlAsText] : [gfm, htmlAsText, linesKept]}
      rehypePlugins={[[rehypeSanitize, allowed], [labelled, { name }], directed, lowered, formulas, ...(marking?.plugins ?? [])]}
      remarkRehypeOptions={{ clobberPrefix: name, footnoteLabel: words.message.footnotes, footnoteLabelTagName: "h3", footnoteBackLabel: words.message.backToText }}
      // The link component checks addresses, because the text must stay where the link may not.
      urlTransform={(address) => address}
      components={marking ? { ...as, ...marking.components } : as}
    >
      {withMathKept(text)}
    </ReactMarkdown>
  );
});

type Props = {
  text: string;
  isStreaming?: boolean;
  /** Whether the text is a document, in which the end of a line is a blank, as CommonMark has it. */
  isDocument?: boolean;
};

export function Markdown({ text, isStreaming = false, isDocument = false }: Props) {
  const id = useId();
  // Rendering may be later than the stream, and does not block the reader's scrolling and typing.
  const paced = usePaced(text, 1);
  const shown = isStreaming ? paced : text;
  const blocks = useMemo(() => (isStreaming ? growing(shown) : settled(shown)), [shown, isStreaming]);
  return (
    <Selectable as="div" className="markdown" data-streaming={isStreaming || undefined}>
      {blocks.map((block, index) => (
        <Block key={index} text={block} name={NOTE + id} isDocument={isDocument} />
      ))}
    </Selectable>
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
  return last.slice(0, at) + remend(withoutHalfMark(last.slice(at)), COMPLETION);
}

/** A block that refers to another one needs it in one render. */
function settled(text: string): string[] {
  return hasDefinitions(text) ? [text] : blocksOf(text);
}
