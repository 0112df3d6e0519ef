// Marks such as `[1]` in an answer's text may name its sources: this file makes an element of each outside of code and
// links. `Mark.tsx` decides which of them are citations, so that a mark needs no other render when its source arrives.
import type { Element, ElementContent, Root, RootContent, Text } from "hast";

/** A pattern with a group, so that `split` keeps the marks at every second index. */
const MARKS = /(\[[1-9]\d{0,2}\])/;

const OPAQUE = new Set(["a", "code", "pre"]);

export function marks() {
  return (tree: Root) => {
    tree.children = tree.children.flatMap(withMarks);
  };
}

function withMarks<Node extends RootContent | ElementContent>(node: Node): (Node | Element | Text)[] {
  if (node.type === "text") return MARKS.test(node.value) ? cut(node.value) : [node];
  if (node.type !== "element" || OPAQUE.has(node.tagName)) return [node];
  node.children = node.children.flatMap(withMarks);
  return [node];
}

function cut(text: string): (Element | Text)[] {
  return text.split(MARKS).flatMap((value, index): (Element | Text)[] => {
    if (value === "") return [];
    const piece: Text = { type: "text", value };
    return [index % 2 === 0 ? piece : { type: "element", tagName: "cite", properties: {}, children: [piece] }];
  });
}
