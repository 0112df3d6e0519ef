// Formulas are shown as they are written. Markdown would take their backslashes and underscores for its own, so they are
// made into what it leaves alone: code of the language `math` for those on lines of their own, escaped text for the others.

const FENCED = /(^ {0,3}(`{3,}|~{3,})[\s\S]*?(?:^ {0,3}\2[`~]*[ \t]*$|$(?![\s\S])))/m;
const CODE = /(`+)(?!`)[\s\S]*?[^`]\1(?!`)/y;
const DISPLAY = /^[ \t]*(?:\$\$\s*\n?([\s\S]+?)\n?\s*\$\$|\\\[\s*\n?([\s\S]+?)\n?\s*\\\])[ \t]*$/gm;
// As pandoc has it: no white space inside of the dollars, no digit behind them, so that prices stay prices.
const INLINE = /\\\((?:[^\n]|\n(?!\n))+?\\\)|\$\$[^\n$]+\$\$|\$(?![\s$])[^\n$]*[^\s$\\]\$(?!\d)/y;

/** The markdown of a block, its formulas kept from being read as markdown. */
export function withMathKept(markdown: string): string {
  if (!/\$|\\[([]/.test(markdown)) return markdown;
  const fenced = FENCED.exec(markdown);
  if (!fenced) return keep(markdown);
  const end = fenced.index + fenced[0].length;
  return keep(markdown.slice(0, fenced.index)) + fenced[0] + withMathKept(markdown.slice(end));
}

function keep(text: string): string {
  return inline(text.replace(DISPLAY, (_, dollars?: string, brackets?: string) => `\`\`\`math\n${(dollars ?? brackets ?? "").trim()}\n\`\`\``));
}

function inline(text: string): string {
  let kept = "";
  let at = 0;
  while (at < text.length) {
    const character = text[at]!;
    const found = character === "`" ? matchAt(CODE, text, at) : character === "$" || character === "\\" ? matchAt(INLINE, text, at) : undefined;
    if (found === undefined) {
      // A backslash takes the character behind it along: an escaped dollar begins no formula.
      const taken = character === "\\" ? 2 : 1;
      kept += text.slice(at, at + taken);
      at += taken;
      continue;
    }
    kept += character === "`" ? found : found.replace(/[!-/:-@[-`{-~]/g, "\\$&");
    at += found.length;
  }
  return kept;
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}
