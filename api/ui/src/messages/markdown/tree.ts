// This file changes the trees between markdown and elements: HTML becomes text, the lines of an answer stay lines, each
// block gets its own direction, and headings move below those of the page.
import type { Element, ElementContent, Root as Elements, RootContent } from "hast";
import type { Nodes, PhrasingContent, Root as Markdown } from "mdast";

/** HTML stays text and never becomes elements; only `<br>`, which tables need, becomes a line break. */
export function htmlAsText() {
  return (tree: Markdown) => asText(tree);
}

function asText(node: Nodes) {
  if (!("children" in node)) return;
  const isFlow = node.type === "root" || node.type === "blockquote" || node.type === "listItem" || node.type === "footnoteDefinition";
  node.children.forEach((child, index) => {
    if (child.type !== "html") return asText(child);
    if (/^<br\s*\/?>$/i.test(child.value)) return void (node.children[index] = { type: "break" });
    const text = { type: "text" as const, value: child.value };
    node.children[index] = isFlow ? { type: "paragraph", children: [text] } : text;
  });
}

/** Models end the lines of a poem or of a postal address as the reader should see them; CommonMark joins such lines. */
export function linesKept() {
  return (tree: Markdown) => keepLines(tree);
}

function keepLines(node: Nodes) {
  if (!("children" in node)) return;
  const children = (node.children as PhrasingContent[]).flatMap((child, index, all): PhrasingContent[] => {
    if (child.type !== "text") keepLines(child);
    if (child.type !== "text" || !/[\r\n]/.test(child.value)) return [child];
    // A line may end with `<br>`, too.
    const text = all[index - 1]?.type === "break" ? child.value.replace(/^\r?\n/, "") : child.value;
    return text.split(/\r?\n|\r/).flatMap((value, line): PhrasingContent[] => [
      ...(line > 0 ? [{ type: "break" as const }] : []),
      ...(value !== "" ? [{ type: "text" as const, value }] : []),
    ]);
  });
  node.children = children as typeof node.children;
}

const DIRECTED = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "td", "th"]);

/** Every footnote refers to the label by an id that includes the message's name, because a page has many messages. */
export function labelled({ name }: { name: string }) {
  return (tree: Elements) => tree.children.forEach((child) => label(child, `${name}label`));
}

function label(node: RootContent | ElementContent, id: string) {
  if (node.type !== "element") return;
  if (node.properties.dataFootnoteRef !== undefined) node.properties.ariaDescribedBy = [id];
  const isNotes = node.tagName === "section" && node.properties.dataFootnotes !== undefined;
  const heading = isNotes && node.children.find((child) => child.type === "element" && /^h\d$/.test(child.tagName));
  if (heading && heading.type === "element") heading.properties.id = id;
  node.children.forEach((child) => label(child, id));
}

/** Each block's first letter decides its direction. */
export function directed() {
  return (tree: Elements) => tree.children.forEach(direct);
}

function direct(node: RootContent | ElementContent) {
  if (node.type !== "element") return;
  if (DIRECTED.has(node.tagName)) {
    node.properties.dir = "auto";
    // A list takes its direction from its items, and skips those that have one themselves.
    if (node.tagName !== "ul" && node.tagName !== "ol") return;
  }
  if (node.tagName === "li") return node.children.filter(isBlock).forEach(direct);
  node.children.forEach(direct);
}

/** Whether an element inside of an item has its own direction and is not the item's text. */
function isBlock(node: ElementContent): node is Element {
  return node.type === "element" && node.tagName !== "p" && node.tagName !== "ul" && node.tagName !== "ol";
}

/**
 * An answer's headings are parts of a message: they come below the page's own, in two levels, which no answer can skip.
 */
export function lowered() {
  return (tree: Elements) => tree.children.forEach(lower);
}

function lower(node: RootContent | ElementContent) {
  if (node.type !== "element") return;
  const level = /^h([1-6])$/.exec(node.tagName)?.[1];
  if (level) {
    node.properties.className = [`level-${level}`];
    node.tagName = Number(level) <= 3 ? "h3" : "h4";
  }
  node.children.forEach(lower);
}
