// Which files the page shows as a table or as code.

export type PreviewKind = { as: "table" } | { as: "code"; language: string };

type Named = { name: string; mediaType: string };

/** The names of languages by the endings of files, as the colours of code know them where they can. */
const LANGUAGES: Record<string, string> = {
  bash: "bash", sh: "bash", zsh: "bash", c: "c", h: "c", cc: "cpp", cpp: "cpp", hpp: "cpp", cs: "csharp", css: "css", diff: "diff", patch: "diff", go: "go", html: "html", htm: "html",
  ini: "ini", toml: "toml", java: "java", js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "javascript", json: "json", jsonl: "json", ndjson: "json", kt: "kotlin", lua: "lua", php: "php",
  pl: "perl", py: "python", rb: "ruby", rs: "rust", scala: "scala", sql: "sql", swift: "swift", ts: "typescript", tsx: "typescript", xml: "xml", svg: "svg", yaml: "yaml", yml: "yaml",
};

/** The language of a text that is no code. */
export const PROSE = "text";

const TABLES = ["csv", "tsv", "tab"];

/** Returns nothing for a file that is no text of these kinds. */
export function previewKind({ name, mediaType }: Named): PreviewKind | undefined {
  const isText = mediaType.startsWith("text/") || mediaType === "application/json";
  if (!isText) return undefined;
  const ending = /\.([A-Za-z0-9]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  if (mediaType === "text/csv" || mediaType === "text/tab-separated-values" || TABLES.includes(ending)) return { as: "table" };
  const language = LANGUAGES[ending] ?? (mediaType === "application/json" ? "json" : undefined);
  if (language) return { as: "code", language };
  return mediaType === "text/markdown" ? undefined : { as: "code", language: PROSE };
}
