// These tests render answers through the whole pipeline.
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test, vi } from "vitest";

vi.hoisted(() => vi.stubGlobal("navigator", { languages: ["en"] }));
const { Markdown } = await import("./Markdown");

const drawn = (text: string, isStreaming = false) => renderToStaticMarkup(<Markdown text={text} isStreaming={isStreaming} />);
const document = (text: string) => renderToStaticMarkup(<Markdown text={text} isDocument />);

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

/** Returns the text of each link. */
const linksOf = (html: string) => [...html.matchAll(/<a [^>]*>(.*?)<\/a>/g)].map(([, text]) => text);

test.each([
  ["请看 https://example.com/a。然后继续", ["https://example.com/a"]],
  ["请看https://example.com/a，或https://example.com/b；都行。", ["https://example.com/a", "https://example.com/b"]],
  ["（https://example.com/b）", ["https://example.com/b"]],
  ["『https://example.com/b』、《https://example.com/c》、【https://example.com/d】", ["https://example.com/b", "https://example.com/c", "https://example.com/d"]],
  ["是https://example.com？对：https://example.org！好", ["https://example.com", "https://example.org"]],
  ["详见“https://example.com/a”一文", ["https://example.com/a"]],
  ["从https://example.com/a～https://example.com/b", ["https://example.com/a", "https://example.com/b"]],
  ["(见 https://example.com/a)。完", ["https://example.com/a"]],
  ["官网：www.example.com。又：www.example.org。", ["www.example.com", "www.example.org"]],
  ["看 www.example.com/a，好", ["www.example.com/a"]],
  ["[注：见 https://example.com/a，https://example.com/b。]完", ["https://example.com/a", "https://example.com/b"]],
  ["https://zh.wikipedia.org/wiki/北京", ["https://zh.wikipedia.org/wiki/北京"]],
  ["https://ja.wikipedia.org/wiki/佐々木・二〇〇八年。", ["https://ja.wikipedia.org/wiki/佐々木・二〇〇八年"]],
  ["https://zh.wikipedia.org/wiki/%E5%8C%97%E4%BA%AC，北京", ["https://zh.wikipedia.org/wiki/%E5%8C%97%E4%BA%AC"]],
  ["https://例子.中国/路径。", ["https://例子.中国/路径"]],
  ["https://example.com/a_(b)_c*d?e=f&g=~h, and", ["https://example.com/a_(b)_c*d?e=f&amp;g=~h"]],
  ["[文档](https://example.com/a，b)。", ["文档"]],
  ["https:// 。https://。", []],
])("a bare address ends before the signs of Chinese and Japanese: %s", (text, links) => {
  for (const isStreaming of [false, true]) {
    const html = drawn(text, isStreaming);
    expect(linksOf(html)).toEqual(links);
    expect(html.replace(/<[^>]*>/g, "").replaceAll("&amp;", "&")).toBe(text.replace(/\[(文档)\].*\)/, "$1"));
  }
});

test("its target is the address alone", () => {
  expect(drawn("请看 https://example.com/a。然后")).toContain('<a href="https://example.com/a" title="https://example.com/a" ');
  expect(drawn("[注：https://example.com/a。]")).toContain('<a href="https://example.com/a" title="https://example.com/a" ');
});

test.each([
  ["**https://example.com**", "https://example.com"],
  ["**https://example.com**是官网", "https://example.com"],
  ["官网**https://example.com/a**，请看", "https://example.com/a"],
  ["**官网：https://example.com/a。**请看**这里**", "https://example.com/a"],
  ["**www.example.com**是官网", "www.example.com"],
  ["see **https://example.com/a**: it has all", "https://example.com/a"],
  ["see ***https://example.com/a***, it has all", "https://example.com/a"],
])("a bold address is a bold link: %s", (text, link) => {
  for (const isStreaming of [false, true]) {
    const html = drawn(text, isStreaming);
    expect(html).toMatch(/<strong>[^<]*<a /);
    expect(linksOf(html)).toEqual([link]);
    expect(html).not.toContain("*");
  }
});

test("the text after an address keeps its signs", () => {
  expect(drawn("见 https://example.com/a。**注意**：`代码`")).toMatch(/<\/a>。<strong>注意<\/strong>：<code>代码<\/code>/);
});

test.each([
  ["addresses", "https://example.com/a。"],
  ["addresses within a bracket", "[注：https://example.com/a。"],
  ["signs in an address", "!?.,"],
])("%s cost no more than their number", (_, unit) => {
  const timeOf = (count: number) => {
    const begin = process.cpuUsage();
    drawn(`https://example.com/${unit.repeat(count)}x`);
    return process.cpuUsage(begin).user / 1_000;
  };
  timeOf(100);
  // A quadratic algorithm takes a hundred times as long.
  expect(timeOf(3_000)).toBeLessThan(30 * timeOf(300) + 200);
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

test.each([
  ["a poem", "Tide in,\ntide out.\n\nBoats\nwait.", ["Tide in,<br/>tide out.", "Boats<br/>wait."]],
  ["lines of Windows", "Tide in,\r\ntide out.", ["Tide in,<br/>tide out."]],
  ["marks at the ends of lines", "**Harbour Office**\n*Quay 7*\n`20457` Port", ["<strong>Harbour Office</strong><br/><em>Quay 7</em><br/><code>20457</code> Port"]],
  ["marks over two lines", "**Quay 7\n20457** Port", ["<strong>Quay 7<br/>20457</strong> Port"]],
  ["breaks of markdown", "a  \nb\\\nc", ["a<br/>b<br/>c"]],
  ["breaks of HTML", "a<br>\nb<br/>c", ["a<br/>b<br/>c"]],
  ["code in a line", "a `b\nc`", ["a <code>b c</code>"]],
  ["a formula over two lines", "a \\(b\n+ c\\) d", ['a <code class="formula" dir="ltr">b + c</code> d']],
])("the lines of an answer stay lines: %s", (_, text, paragraphs) => {
  for (const isStreaming of [false, true]) {
    const html = drawn(text, isStreaming).replaceAll("<br/>\n", "<br/>");
    expect([...html.matchAll(/<p dir="auto">(.*?)<\/p>/gs)].map(([, inner]) => inner)).toEqual(paragraphs);
  }
});

test("lines of items and quotations stay lines, and those of tables and code stay as they are", () => {
  expect(drawn("- Quay 7\n  20457 Port\n- b")).toMatch(/<li>\s*Quay 7<br\/>\s*20457 Port\s*<\/li>/);
  expect(drawn("> a\n> b\nc")).toMatch(/<p dir="auto">a<br\/>\s*b<br\/>\s*c<\/p>/);
  expect(drawn("|a|\n|-|\n|b|\n|c|")).not.toContain("<br");
  expect(drawn("```\na\nb\n```")).not.toContain("<br");
  expect(drawn("    a\n    b")).not.toContain("<br");
});

test("a document joins its lines as CommonMark does, and breaks them where it says so", () => {
  expect(document("one\ntwo  \nthree")).toMatch(/<p dir="auto">one\ntwo<br\/>\s*three<\/p>/);
  expect(document("a \\(b\n+ c\\) d")).toContain('<code class="formula" dir="ltr">b + c</code>');
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
