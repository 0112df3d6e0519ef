// The highlighter colours these languages. This separate file loads only for a reader who sees code, see `colour.ts`.
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

import type { Highlight } from "./colour";

const lowlight = createLowlight({ bash, cpp, css, diff, go, ini, java, javascript, json, python, rust, sql, typescript, xml, yaml });
lowlight.registerAlias({ bash: ["console", "shell"], cpp: ["c"] });

export const highlight: Highlight = (text, language) => {
  if (!lowlight.registered(language.toLowerCase())) return undefined;
  return lowlight.highlight(language.toLowerCase(), text).children as ReturnType<Highlight>;
};
