// An answer may have only these elements and attributes: markdown makes them, and no others.
import type { Schema } from "hast-util-sanitize";

export const allowed: Schema = {
  tagNames: [
    ..."a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img input li ol p pre section strong sup".split(" "),
    ..."table tbody td th thead tr ul".split(" "),
  ],
  attributes: {
    a: ["href", "dataFootnoteRef", "dataFootnoteBackref", "ariaDescribedBy", "id"],
    code: [["className", /^language-[\w+#.-]{1,40}$/]],
    img: ["src", "alt"],
    input: ["checked", ["disabled", true], ["type", "checkbox"]],
    li: ["id", ["className", "task-list-item"]],
    ol: ["start", ["className", "contains-task-list"]],
    section: ["dataFootnotes", ["className", "footnotes"]],
    td: ["align"],
    th: ["align"],
    ul: [["className", "contains-task-list"]],
  },
  protocols: { href: ["http", "https", "mailto"], src: ["http", "https"] },
  required: { input: { disabled: true, type: "checkbox" } },
  strip: ["script"],
  // The only ids are those of footnotes, which include the message's name.
  clobber: [],
};
