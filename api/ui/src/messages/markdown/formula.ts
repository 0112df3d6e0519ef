// `math.ts` marks where inline formulas begin and end; this file makes code of them, without the marks.
import type { Element, ElementContent, Root, RootContent, Text } from "hast";

/** These two characters are in the private use area, so no text needs them. */
export const BEGIN = "\uE000";
export const END = "\uE001";

const FORMULA = /\uE000([^\uE000\uE001]*)\uE001/;
const MARKS = /[\uE000\uE001]|%EE%80%8[01]/g;

export function formulas() {
  return (tree: Root) => {
    tree.children = tree.children.flatMap(withFormulas);
  };
}

function withFormulas<Node extends RootContent | ElementContent>(node: Node): (Node | Element | Text)[] {
  if (node.type === "text") return cut(node.value);
  if (node.type !== "element") return [node];
  // A marked text may be part of an address.
  for (const [name, value] of Object.entries(node.properties)) {
    if (typeof value === "string") node.properties[name] = value.replace(MARKS, "");
  }
  node.children = node.children.flatMap(withFormulas);
  return [node];
}

/**
 * Returns the texts and the formulas alternately: `split` by a pattern with a group puts its matches at every second
 * index.
 */
function cut(text: string): (Element | Text)[] {
  return text.split(FORMULA).flatMap((piece, index): (Element | Text)[] => {
    const value = piece.replace(MARKS, "");
    if (value === "") return [];
    return index % 2 === 0 ? [{ type: "text", value }] : [codeOf(value)];
  });
}

function codeOf(formula: string): Element {
  const bare = formula.replace(/^(?:\$\$?|\\\()|(?:\$\$?|\\\))$/g, "").trim();
  return { type: "element", tagName: "code", properties: { className: ["formula"], dir: "ltr" }, children: [{ type: "text", value: bare }] };
}
