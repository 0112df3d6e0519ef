// Keeps the reader's selection in an element whose text grows: the browser drops a selection from each text that React
// sets or replaces.
import { Component, createElement, createRef, type HTMLAttributes } from "react";

/** `chars` counts the characters before the place, if it is within the element. */
type Place = { node: Node; offset: number; chars?: number };
type Ends = { anchor: Place; focus: Place };

// A hook cannot read the selection between a render and its changes of the document.
export class Selectable extends Component<{ as: "div" | "code" } & HTMLAttributes<HTMLElement>> {
  readonly element = createRef<HTMLElement>();

  override getSnapshotBeforeUpdate(): Ends | undefined {
    const { anchorNode, anchorOffset, focusNode, focusOffset } = getSelection()!;
    const anchor = anchorNode && this.#place(anchorNode, anchorOffset);
    const focus = focusNode && this.#place(focusNode, focusOffset);
    return anchor && focus && (anchor.chars ?? focus.chars) !== undefined ? { anchor, focus } : undefined;
  }

  override componentDidUpdate(_: unknown, __: unknown, ends?: Ends) {
    const selection = getSelection()!;
    if (!ends || (isAt(ends.anchor, selection.anchorNode, selection.anchorOffset) && isAt(ends.focus, selection.focusNode, selection.focusOffset))) return;
    const anchor = this.#found(ends.anchor);
    const focus = this.#found(ends.focus);
    selection.setBaseAndExtent(anchor.node, anchor.offset, focus.node, focus.offset);
  }

  override render() {
    const { as, ...props } = this.props;
    return createElement(as, { ...props, ref: this.element });
  }

  #place(node: Node, offset: number): Place {
    const element = this.element.current!;
    if (!element.contains(node)) return { node, offset };
    const before = new Range();
    before.selectNodeContents(element);
    before.setEnd(node, offset);
    return { node, offset, chars: before.toString().length };
  }

  /** Returns the place in the changed text. A replaced text is found by its distance from the beginning. */
  #found({ node, offset, chars }: Place): Place {
    if (chars === undefined || (node.isConnected && offset <= (node.nodeValue ?? "").length)) return { node, offset };
    const texts = document.createTreeWalker(this.element.current!, NodeFilter.SHOW_TEXT);
    let left = chars;
    let text: Node = this.element.current!;
    while (texts.nextNode()) {
      text = texts.currentNode;
      const { length } = text.nodeValue!;
      // The beginning of a text is not the end of the text before.
      if (left < length || (left === length && offset > 0)) return { node: text, offset: left };
      left -= length;
    }
    return { node: text, offset: text.nodeValue?.length ?? 0 };
  }
}

function isAt({ node, offset }: Place, shown: Node | null, at: number): boolean {
  return node === shown && offset === at;
}
