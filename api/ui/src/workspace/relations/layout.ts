// This file places the entities of a picture of relations: a column for each kind, and the relations between them.
import type { Edge, EntityKind } from "../../client/workspace";

export const NODE = { width: 176, height: 40 } as const;
const GAP = { x: 120, y: 20 } as const;
const MARGIN = { x: 8, top: 36, bottom: 16 } as const;

/** Columns in the order of purpose, work and result. */
const COLUMNS: readonly EntityKind[] = ["project", "goal", "plan", "task", "document", "output"];

/** A picture of more relations is no picture. */
const MOST_EDGES = 60;

export interface Picture {
  width: number;
  height: number;
  columns: { kind: EntityKind; x: number }[];
  nodes: { kind: EntityKind; id: string; x: number; y: number }[];
  edges: { edge: Edge; path: string; label: { x: number; y: number } }[];
  /** The number of relations that it leaves out. */
  left: number;
}

export function pictureOf(all: readonly Edge[]): Picture {
  const shown = all.slice(0, MOST_EDGES);
  const ends = new Map(shown.flatMap((edge) => [[edge.from_id, edge.from_kind] as const, [edge.to_id, edge.to_kind] as const]));
  const kinds = COLUMNS.filter((kind) => [...ends.values()].includes(kind));
  const columns = kinds.map((kind, index) => ({ kind, x: MARGIN.x + index * (NODE.width + GAP.x) }));
  const rows = new Map<EntityKind, number>();
  const nodes = [...ends].map(([id, kind]) => {
    const row = rows.get(kind) ?? 0;
    rows.set(kind, row + 1);
    return { id, kind, x: columns.find((column) => column.kind === kind)!.x, y: MARGIN.top + row * (NODE.height + GAP.y) };
  });
  const places = new Map(nodes.map((node) => [node.id, node]));
  const edges = shown.flatMap((edge, index) => {
    const from = places.get(edge.from_id);
    const to = places.get(edge.to_id);
    return from && to ? [{ edge, ...lineBetween(from, to, index) }] : [];
  });
  const tallest = Math.max(1, ...rows.values());
  return {
    // A relation within the last column bends into the margin.
    width: columns.length * (NODE.width + GAP.x) - GAP.x + 2 * MARGIN.x + (edges.some(({ edge }) => edge.from_kind === edge.to_kind) ? GAP.x / 2 : 0),
    height: MARGIN.top + tallest * (NODE.height + GAP.y) - GAP.y + MARGIN.bottom,
    columns,
    nodes,
    edges,
    left: all.length - shown.length,
  };
}

type Point = { x: number; y: number };

/** Lines that share an end have their labels at different heights. */
function lineBetween(from: Point, to: Point, index: number): { path: string; label: Point } {
  const middle = NODE.height / 2;
  if (from.x === to.x) {
    const start = { x: from.x + NODE.width, y: from.y + middle };
    const end = { x: to.x + NODE.width, y: to.y + middle };
    const bend = start.x + GAP.x / 2;
    return { path: `M${start.x} ${start.y}C${bend} ${start.y} ${bend} ${end.y} ${end.x} ${end.y}`, label: { x: start.x + GAP.x / 3, y: (start.y + end.y) / 2 } };
  }
  const direction = from.x < to.x ? 1 : -1;
  const start = { x: direction > 0 ? from.x + NODE.width : from.x, y: from.y + middle };
  const end = { x: direction > 0 ? to.x : to.x + NODE.width, y: to.y + middle };
  if (Math.abs(start.x - end.x) <= GAP.x) {
    const half = (start.x + end.x) / 2;
    const share = 0.3 + 0.2 * (index % 3);
    return { path: `M${start.x} ${start.y}C${half} ${start.y} ${half} ${end.y} ${end.x} ${end.y}`, label: { x: half, y: start.y + (end.y - start.y) * share } };
  }
  // A line past other columns runs between two rows, where no node is.
  const lane = start.y + middle + GAP.y / 2;
  const bend = { out: start.x + (direction * GAP.x) / 2, in: end.x - (direction * GAP.x) / 2 };
  const flat = { from: start.x + direction * GAP.x, to: end.x - direction * GAP.x };
  return {
    path: `M${start.x} ${start.y}C${bend.out} ${start.y} ${bend.out} ${lane} ${flat.from} ${lane}L${flat.to} ${lane}C${bend.in} ${lane} ${bend.in} ${end.y} ${end.x} ${end.y}`,
    label: { x: bend.out, y: (start.y + lane) / 2 },
  };
}
