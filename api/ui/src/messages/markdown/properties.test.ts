import { expect, test } from "vitest";

// The path leads to the package itself, which the build replaces.
import * as all from "../../../node_modules/property-information/index.js";
import { allowed } from "./allowed";
import * as own from "./properties";

/** Returns the name for React as the package hast-util-to-jsx-runtime finds it. */
function nameIn({ find, hastToReact, html }: Pick<typeof all, "find" | "hastToReact"> & { html: unknown }, property: string): string {
  const info = find(html as typeof all.html, property);
  return info.space ? (hastToReact[info.property] ?? info.property) : info.attribute;
}

/** The page adds `dir`, and the properties of formulas and headings, to those that an answer may have. */
const properties = [...new Set([...Object.values(allowed.attributes!).flat().map((one) => (typeof one === "string" ? one : `${one[0]}`)), "dir", "className", "ariaDescribedBy", "id"])];

test.each(properties)("React's name of %s is that of the package", (property) => {
  expect(nameIn(own as never, property)).toBe(nameIn(all, property));
});

test("no value of an answer is a list with commas", () => {
  expect(properties.filter((property) => all.find(all.html, property).commaSeparated)).toEqual([]);
});
