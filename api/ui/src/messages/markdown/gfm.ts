// Tables, task lists, footnotes, struck text and bare addresses. As the package `remark-gfm` has it, without the half of it
// that writes markdown, which is a fifth of what the page's markdown weighs.
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm as syntax } from "micromark-extension-gfm";
import type {} from "remark-parse";
import type { Plugin } from "unified";

export const gfm: Plugin = function () {
  const data = this.data();
  (data.micromarkExtensions ??= []).push(syntax());
  (data.fromMarkdownExtensions ??= []).push(gfmFromMarkdown());
};
