// This file names the properties of an answer's elements as React does. It replaces the package property-information in
// the build (`vite.config.ts`), whose tables of HTML and SVG weigh 5 KiB, gzip. React has the tree's name for each of the
// few properties that an answer may have (`allowed.ts`).

export const html = { space: "html" };

/** No answer has elements of SVG. */
export const svg = html;

export const hastToReact: Record<string, string> = {};

export function find(_: unknown, property: string) {
  const [, kind, name] = /^(aria|data)([A-Z]\w*)$/.exec(property) ?? [];
  if (!kind || !name) return { property, attribute: property, space: "html" };
  return { property, attribute: kind === "aria" ? `aria-${name.toLowerCase()}` : `data${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}` };
}
