// This file adds tables, task lists, footnotes, struck text and bare addresses. It equals the package `remark-gfm`
// without the half that writes markdown, which is a fifth of the page's markdown code.
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm as syntax } from "micromark-extension-gfm";
import type {} from "remark-parse";
import type { Plugin } from "unified";

import { withAddressEnds, withCuts } from "./addresses";
import { withCjk } from "./cjk";

export const gfm: Plugin = function () {
  const data = this.data();
  // One tilde is a sign of ranges: "3~5 days, 100~200 km".
  (data.micromarkExtensions ??= []).push(withAddressEnds(withCjk(syntax({ singleTilde: false }))));
  const trees = gfmFromMarkdown().map(({ transforms, ...rest }) => ({ ...rest, transforms: transforms?.map(withCuts) }));
  (data.fromMarkdownExtensions ??= []).push(trees);
};
