// Formulas in a line, of which `math.ts` has marked where they begin and end: they become code, without their signs.
import type { Element, ElementContent, Root, RootContent, Text } from "hast";

/** Two characters of the private use area, which no text has any use for. */
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
  // What looked like one may be a part of an address.
  for (const [name, value] of Object.entries(node.properties)) {
    if (typeof value === "string") node.properties[name] = value.replace(MARKS, "");
  }
  node.children = node.children.flatMap(withFormulas);
  return [node];
}

/** The texts and the formulas, one after the other: what a pattern with a group cuts out is at every second place. */
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
