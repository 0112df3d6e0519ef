import { expect, test } from "vitest";

import type { Edge } from "../../client/workspace";
import { NODE, pictureOf } from "./layout";

const edge = (id: string, from: [Edge["from_kind"], string], to: [Edge["to_kind"], string]): Edge => ({ id, project_id: "p", from_kind: from[0], from_id: from[1], relation: "supports", to_kind: to[0], to_id: to[1], version: 1 });

test("each kind has a column, in the order of purpose, work and result", () => {
  const picture = pictureOf([edge("1", ["document", "d"], ["goal", "g"]), edge("2", ["task", "t"], ["goal", "g"])]);
  expect(picture.columns.map(({ kind }) => kind)).toEqual(["goal", "task", "document"]);
  expect(new Set(picture.nodes.map(({ id }) => id))).toEqual(new Set(["g", "t", "d"]));
  expect(picture.edges).toHaveLength(2);
});

test("nodes of a column do not overlap, and lie inside the picture", () => {
  const { nodes, width, height } = pictureOf(["a", "b", "c"].map((id) => edge(id, ["task", id], ["goal", "g"])));
  const rows = nodes.filter(({ kind }) => kind === "task").map(({ y }) => y);
  expect(rows.slice(1).every((y, index) => y - rows[index]! >= NODE.height)).toBe(true);
  expect(nodes.every(({ x, y }) => x >= 0 && x + NODE.width <= width && y + NODE.height <= height)).toBe(true);
});

test("a picture without relations is empty", () => {
  expect(pictureOf([])).toMatchObject({ nodes: [], edges: [], left: 0 });
});

test("a picture leaves out what a reader cannot see", () => {
  const many = Array.from({ length: 70 }, (_, index) => edge(`${index}`, ["task", `t${index}`], ["goal", "g"]));
  expect(pictureOf(many)).toMatchObject({ left: 10 });
});
