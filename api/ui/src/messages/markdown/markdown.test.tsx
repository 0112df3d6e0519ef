// These tests render answers through the whole pipeline.
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test, vi } from "vitest";

vi.hoisted(() => vi.stubGlobal("navigator", { languages: ["en"] }));
const { Markdown } = await import("./Markdown");

const drawn = (text: string, isStreaming = false) => renderToStaticMarkup(<Markdown text={text} isStreaming={isStreaming} />);

/** Returns the tags and their attributes; text can do no harm. */
const tagsOf = (html: string) => html.match(/<[a-z][^>]*>/gi) ?? [];

const hostile = [
  `<script>alert(1)</script>`,
  `<img src=x onerror=alert(1)>`,
  `<svg/onload=alert(1)>`,
  `<svg><script>alert(1)</script></svg>`,
  `<iframe src="javascript:alert(1)"></iframe>`,
  `<iframe srcdoc="<script>alert(1)</script>"></iframe>`,
  `<a href="javascript:alert(1)">x</a>`,
  `<body onload=alert(1)>`,
  `<style>*{background:url(//evil.example)}</style>`,
  `<link rel=stylesheet href=//evil.example>`,
  `<base href=//evil.example>`,
  `<meta http-equiv=refresh content="0;url=//evil.example">`,
  `<form action=//evil.example><input name=p><button>go</button></form>`,
  `<object data="javascript:alert(1)"></object><embed src="javascript:alert(1)">`,
  `<details open ontoggle=alert(1)>x</details>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`,
  `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
  `<video src=x onerror=alert(1)></video><audio src=x onerror=alert(1)>`,
  `a <b onmouseover=alert(1)>b</b> c`,
  `<!-- <img src=x onerror=alert(1)> -->`,
  `<![CDATA[<img src=x onerror=alert(1)>]]>`,
  `[x](javascript:alert(1))`,
  `[x](JaVaScRiPt:alert(1))`,
  `[x](java\tscript:alert(1))`,
  `[x](&#106;avascript:alert(1))`,
  `[x](javascript&colon;alert(1))`,
  `[x](\u0001javascript:alert(1))`,
  `[x](vbscript:msgbox(1))`,
  `[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)`,
  `[x](file:///etc/passwd)`,
  `[x](blob:https://example.org/1)`,
  `[x](//evil.example)`,
  `[x](/v1/agents)`,
  `[x](?q=1)`,
  `[x](https://example.org@evil.example)`,
  `<javascript:alert(1)>`,
  `[x]: javascript:alert(1)\n\n[x]`,
  `![x](javascript:alert(1))`,
  `![x](https://evil.example/pixel.png)`,
  `![x](data:image/svg+xml,<svg onload=alert(1)>)`,
  `[![x](https://evil.example/pixel.png)](javascript:alert(1))`,
  `[x](https://example.org "\\" onmouseover=\\"alert(1)")`,
  `[x](https://example.org/"onmouseover="alert(1))`,
  `![" onerror="alert(1)](https://example.org)`,
  "```\"><img src=x onerror=alert(1)>\ncode\n```",
  "```js onload=alert(1)\n</code></pre><script>alert(1)</script>\n```",
  "`<img src=x onerror=alert(1)>`",
  `| <script>alert(1)</script> | [x](javascript:alert(1)) |\n|--|--|\n| <img src=x onerror=alert(1)> | ![x](https://evil.example) |`,
  `[^1]\n\n[^1]: <img src=x onerror=alert(1)> [x](javascript:alert(1))`,
  `[^<img src=x>]\n\n[^<img src=x>]: x`,
  `[x](#root)`,
  `- [ ] <script>alert(1)</script>`,
  `$$<img src=x onerror=alert(1)>$$`,
  `\\(<img src=x onerror=alert(1)>\\)`,
  `<br onclick=alert(1)>`,
];

test.each(hostile)("%j does no harm", (text) => {
  for (const isStreaming of [false, true]) {
    const tags = tagsOf(drawn(text, isStreaming));
    for (const tag of tags) {
      expect(tag).not.toMatch(/^<(?:script|style|iframe|object|embed|link|meta|base|form|img|video|audio|math|noscript|body|details|input)\b/i);
      // The characters around its value distinguish an attribute from text.
      expect(tag.replace(/"[^"]*"/g, '""')).not.toMatch(/\son\w+=|\s(?:src|srcdoc|style|action|formaction|xlink:href)=/i);
      expect(tag).not.toMatch(/href="(?!https?:\/\/|mailto:|#note-)/i);
      expect(tag).not.toMatch(/href="[^"/]*\/\/[^"/]*@/);
    }
  }
});

test("no answer loads a resource", () => {
  expect(tagsOf(drawn(hostile.join("\n\n"))).filter((tag) => /\b(?:src|srcset|poster|background|data)=/.test(tag))).toEqual([]);
});

test("HTML stays text", () => {
  expect(drawn("use Vec<String> here")).toContain("Vec&lt;String&gt;");
  expect(drawn("<div>\n\nx")).toContain("&lt;div&gt;");
});

test("links open a tab that knows nothing of this page", () => {
  expect(drawn("[x](https://example.org)")).toContain(
    '<a href="https://example.org/" title="https://example.org/" target="_blank" rel="noopener noreferrer nofollow">x</a>',
  );
});

test("an image is a link that shows its target", () => {
  const html = drawn("![a cat](https://example.org/cat.png)");
  expect(html).toContain('href="https://example.org/cat.png"');
  expect(html).toContain("Image: a cat");
  expect(html).toContain("example.org</span>");
});

test("no link is in a link, and an unlinked image says so", () => {
  const html = drawn("[![a cat](https://example.org/cat.png)](https://example.org/cats)");
  expect(html.match(/<a /g)).toHaveLength(1);
  expect(html).toContain('href="https://example.org/cats"');
  expect(drawn("[the guide](/docs/guide)")).toContain('<span title="Not linked: /docs/guide">the guide</span>');
});

test("tables, tasks, lists and breaks in cells survive", () => {
  expect(drawn("|a|\n|-|\n|b<br>c|")).toMatch(/<table>.*<td[^>]*>b<br\/>\n?c<\/td>/s);
  expect(drawn("- [x] done\n- [ ] not")).toContain('data-done="true" aria-label="done"');
  expect(drawn("3. c\n4. d")).toContain('<ol start="3"');
});

test("each block has its own direction", () => {
  expect(drawn("# مرحبا\n\nhello\n\n- عنصر")).toMatch(/<h3 dir="auto".*<p dir="auto".*<ul dir="auto">\s*<li>/s);
});

test("a footnote's anchors lead to each other", () => {
  const html = drawn("a[^1]\n\n[^1]: b");
  const [, to] = /href="#([^"]+fn-1)"/.exec(html)!;
  expect(html).toContain(`id="${to}"`);
  const [, back] = /href="#([^"]+fnref-1)"/.exec(html)!;
  expect(html).toContain(`id="${back}"`);
});

test("a footnote's description is the label of its message's footnotes", () => {
  const html = drawn("a[^1]\n\n[^1]: b");
  const [, label] = /aria-describedby="([^"]+)"/.exec(html)!;
  expect(label).toMatch(/^note-/);
  expect(html).toMatch(new RegExp(`<h3[^>]* id="${label}"`));
});

test.each([false, true])("only two tildes strike text, and ranges keep theirs (streaming: %s)", (isStreaming) => {
  expect(drawn("3~5天，价格100~200元", isStreaming)).toContain("3~5天，价格100~200元");
  expect(drawn("|a|\n|-|\n| 2~3 h and 4~5 h |", isStreaming)).toContain("2~3 h and 4~5 h");
  expect(drawn("~~old price~~ at ~5 or ~6", isStreaming)).toContain("<del>old price</del> at ~5 or ~6");
});

test.each([
  ["**注意：**请先备份。", ["注意："]],
  ["不如人意的**《李茶的姑妈》**已经上映。", ["《李茶的姑妈》"]],
  ["1. **第一步（准备）。**打开文件。", ["第一步（准备）。"]],
  ["用户の**「設定」**を開く。", ["「設定」"]],
  ["**사과(과일)**를 먹는다.", ["사과(과일)"]],
  ["请用**`code`**的**“引用”**吧", ["<code>code</code>", "“引用”"]],
  ["a * b * c 和 2 ** 3 ** 4", []],
])("bold text beside Chinese, Japanese and Korean is bold: %s", (text, bold) => {
  for (const isStreaming of [false, true]) {
    const html = drawn(text, isStreaming);
    expect([...html.matchAll(/<strong>(.*?)<\/strong>/g)].map(([, inner]) => inner)).toEqual(bold);
    if (bold.length > 0) expect(html).not.toContain("*");
  }
});

test("struck text beside them is struck", () => {
  expect(drawn("现价~~（旧价）~~的")).toContain("<del>（旧价）</del>");
});

test("the reader never sees half of a sign", () => {
  expect(drawn("this is **bo", true)).toContain("<strong>bo</strong>");
  expect(drawn("see [the docs](https://exam", true)).not.toContain("](");
  expect(drawn("a paragraph\n-", true)).toBe(drawn("a paragraph", true));
});

test("formulas appear as the model wrote them, without their signs", () => {
  expect(drawn("so $a_i*b_i*c$ and \\(x_1\\) hold")).toContain('so <code class="formula" dir="ltr">a_i*b_i*c</code> and <code class="formula" dir="ltr">x_1</code> hold');
  expect(drawn("| $|x_1|$ |\n|-|\n| a |")).toContain(">|x_1|</code>");
  expect(drawn("[x](https://example.org/?a=$b&c=$d)")).toContain('href="https://example.org/?a=$b&amp;c=$d"');
  expect(drawn("$$\na_1 * b_1 * c\n$$")).toContain("a_1 * b_1 * c");
});

test("a long table is one table, with one head", () => {
  const html = drawn(`| a |\n|-|\n${"| **b** |\n".repeat(100)}`);
  expect(html.match(/<table>/g)).toHaveLength(1);
  expect(html.match(/<thead>/g)).toHaveLength(1);
  expect(html.match(/<td dir="auto"><strong>b<\/strong><\/td>/g)).toHaveLength(100);
});

test("code is equal during and after its writing", () => {
  const [open, closed] = [drawn("```js\nlet a;\n\nlet b;", true), drawn("```js\nlet a;\n\nlet b;\n```", true)];
  // They differ only in the separate element of the newest line.
  expect(open.replaceAll("</span><span>", "")).toBe(closed.replaceAll("</span><span>", ""));
});
