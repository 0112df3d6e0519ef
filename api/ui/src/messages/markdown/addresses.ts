// A bare address ends before a sign of Chinese or Japanese, whose sentences have no blanks, and before `**`. The
// packages of micromark end it at a blank, or at signs of ASCII.
import type { Parents, PhrasingContent, Root } from "mdast";
import type { Code, Construct, Effects, Extension, State, TokenizeContext } from "micromark-util-types";

import { is, SIGNS } from "./cjk";

/** Paths of Wikipedia have `々` and `〇`, which are letters, and the middle dots, which the pattern excludes. */
const END = new RegExp(`(?![・･])(?=[\\p{P}\\p{S}])[${SIGNS}“”…]`, "u");
const BEFORE_END = new RegExp(`(?=${END.source})`, "u");

const STAR = 42;
const BLANK = 32;

/** Changes the syntax of bare addresses. */
export function withAddressEnds({ text, ...rest }: Extension): Extension {
  const changed = Object.entries(text ?? {}).map(([code, constructs]) => [code, [constructs ?? []].flat().map(withEnd)]);
  return { ...rest, text: Object.fromEntries(changed) };
}

function withEnd(construct: Construct): Construct {
  if (construct.name !== "protocolAutolink" && construct.name !== "wwwAutolink") return construct;
  return {
    ...construct,
    tokenize(effects, ok, nok) {
      let given: Code = null;
      let hasEnded = false;
      /** Signs before this offset belong to the address; micromark would read the rest again at each of them. */
      let decidedTo = 0;
      // Invariant: the address and its parts receive each character from here; the text after the address does not.
      const read = (state: State): State => (code) => {
        given = code;
        const next = state(isEnd(this, code) ? BLANK : code);
        return next && !hasEnded ? read(next) : next;
      };
      const leave = (next: State): State => () => {
        hasEnded = true;
        return next(given);
      };
      // micromark expects the character itself at the end of each part, and not the blank.
      const part = (inner: Construct): Construct => ({
        ...inner,
        tokenize(own, yes, no) {
          const fail: State = () => {
            decidedTo = Math.max(decidedTo, this.now().offset);
            return no(given);
          };
          return this.now().offset < decidedTo ? fail : inner.tokenize.call(this, parted(own), () => yes(given), fail);
        },
      });
      const parted = (own: Effects): Effects => ({
        ...own,
        attempt: (inner, yes, no) => own.attempt(part(inner as Construct), yes, no),
        check: (inner, yes, no) => own.check(part(inner as Construct), yes, no),
      });
      return read(construct.tokenize.call(this, parted(effects), leave(ok), leave(nok)));
    },
  };
}

function isEnd({ previous }: TokenizeContext, code: Code): boolean {
  return is(END, code) || (code === STAR && previous === STAR);
}

/** Wraps the search for addresses that the syntax has left in texts, such as those within brackets. */
export function withCuts(find: (tree: Root) => unknown): (tree: Root) => void {
  const cut = (node: Parents) => {
    const children = (node.children as PhrasingContent[]).flatMap((child): PhrasingContent[] => {
      // Only that search makes links without a position.
      if (child.type === "link" && !child.position) return pieces(child.children[0]);
      if ("children" in child) cut(child);
      return [child];
    });
    node.children = children as typeof node.children;
  };
  const pieces = (text: PhrasingContent | undefined): PhrasingContent[] => {
    const values = text?.type === "text" ? text.value.split(BEFORE_END) : [];
    const tree: Root = { type: "root", children: values.map((value) => ({ type: "text", value })) };
    find(tree);
    return tree.children as PhrasingContent[];
  };
  return (tree) => {
    find(tree);
    cut(tree);
  };
}
