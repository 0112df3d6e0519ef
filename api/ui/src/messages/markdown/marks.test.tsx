import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";

import { Cited, type Citation } from "../cited";
import { marking } from "../citing";
import { withoutHalfMark } from "./blocks";
import { Markdown, Marking } from "./Markdown";

const citation: Citation = { number: 1, documentId: "d", title: "Tides & <streams>", page: 3, start: 4, end: 9 };
const cited = { byNumber: new Map([[1, citation]]), show: () => {} };

const html = (text: string, isStreaming = false) =>
  renderToStaticMarkup(
    <Marking value={marking}>
      <Cited value={cited}>
        <Markdown text={text} isStreaming={isStreaming} />
      </Cited>
    </Marking>,
  );
const chips = (text: string) => [...html(text).matchAll(/<a class="cite"[^>]*>(.*?)<\/a>/g)].map(([, label]) => label);

test("a mark with a source is a link to the place, with a name", () => {
  expect(html("High water [1].")).toContain('<a class="cite" href="/k/d/d?start=4&amp;end=9" title="Tides &amp; &lt;streams&gt;, p. 3"');
  expect(html("High water [1].")).toMatch(/High water <a [^>]*>\[1\]<\/a>\./);
});

test.each([
  ["a paragraph", "Six [1] and seven[1].", 2],
  ["emphasis", "**Six [1]**", 1],
  ["a list", "- Six [1]\n- Seven", 1],
  ["a table", "| a | b |\n| - | - |\n| Six [1] | x |", 1],
  ["a heading", "## Six [1]", 1],
  ["a quotation", "> Six [1]", 1],
  ["neighbours", "Six [1][1]", 2],
  ["code", "`a[1]`", 0],
  ["a block of code", "```\na[1]\n```", 0],
  ["a formula", "\\(x[1]\\)", 0],
  ["a link", "[see [1]](https://x.test)", 0],
  ["no source", "Six [2] [0] [01] [1000]", 0],
])("marks in %s", (_, text, count) => {
  expect(chips(text)).toEqual(Array.from({ length: count }, () => "[1]"));
});

test("a mark without a source stays as it is", () => {
  expect(html("Six [2].")).toContain("<p dir=\"auto\">Six [2].</p>");
});

test("half a mark is not shown, because it would change", () => {
  expect(["Six [", "Six [1", "Six [1]", "Six [a"].map(withoutHalfMark)).toEqual(["Six ", "Six ", "Six [1]", "Six [a"]);
  expect(html("Six [1", true)).toContain("Six");
  expect(html("Six [1", true)).not.toContain("1");
});
