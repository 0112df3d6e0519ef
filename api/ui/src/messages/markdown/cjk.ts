// Chinese, Japanese and Korean have no blanks between words. Marks beside their characters work as beside a
// letter.
import { attention } from "micromark-core-commonmark";
import type { Code, Construct, Extension, State, Token } from "micromark-util-types";

export const SIGNS = "\\u3001-\\u303F\\u30FB\\uFE10-\\uFE1F\\uFE30-\\uFE6F\\uFF01-\\uFF0F\\uFF1A-\\uFF20\\uFF3B-\\uFF40\\uFF5B-\\uFF65";
const LETTERS = "\\u1100-\\u11FF\\u2E80-\\u2FDF\\u3040-\\u30FA\\u30FC-\\u318F\\u31A0-\\u4DBF\\u4E00-\\u9FFF\\uA960-\\uA97F\\uAC00-\\uD7FF\\uF900-\\uFAFF\\uFF10-\\uFF19\\uFF21-\\uFF3A\\uFF41-\\uFF5A\\uFF66-\\uFFDC";
const CJK = new RegExp(`[${SIGNS}${LETTERS}]`);

const STAR = 42;
const TILDE = 126;

/** Changes the syntax of bold and struck text. */
export function withCjk({ text, ...rest }: Extension): Extension {
  const struck = [text?.[TILDE]].flat().map((construct) => asMark(construct!));
  return { ...rest, text: { ...text, [STAR]: asMark(attention), [TILDE]: struck } };
}

/** A sequence of marks beside such a character opens and closes as beside a letter. */
function asMark(construct: Construct): Construct {
  return {
    ...construct,
    tokenize(effects, ok, nok) {
      const { previous } = this;
      let mark: Token;
      const exit: typeof effects.exit = (type) => (mark = effects.exit(type));
      const done: State = (code) => {
        if (is(CJK, previous) || is(CJK, code)) {
          const before = kindOf(previous, code);
          const after = kindOf(code, previous);
          mark._open ||= after === "letter" || (after === "sign" && before !== "letter");
          mark._close ||= before === "letter" || (before === "sign" && after !== "letter");
        }
        return ok(code);
      };
      return construct.tokenize.call(this, { ...effects, exit }, done, nok);
    },
  };
}

/** Beside another sign, such as a bracket, the character counts as the end of a word. */
function kindOf(code: Code, other: Code): "blank" | "sign" | "letter" {
  if (is(CJK, code)) return is(/[\p{P}\p{S}]/u, other) && !is(CJK, other) ? "sign" : "letter";
  if (code === null || code < 0 || is(/\s/, code)) return "blank";
  return is(/[\p{P}\p{S}]/u, code) ? "sign" : "letter";
}

export function is(kind: RegExp, code: Code): boolean {
  return code !== null && code > 0 && kind.test(String.fromCharCode(code));
}
