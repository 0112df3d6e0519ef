// Which pieces make the answer, for whoever follows a run on the native wire.
const at = (id) => id.split("-").reduce((attempt, n) => attempt * 2 ** 32 + Number(n), 0);

/** The pieces of the answer that are left when this event has come. */
export function fold(pieces, event) {
  if (event.base) pieces = pieces.filter((piece) => at(piece.id) <= at(event.base));
  if (event.type === "message.delta") pieces.push(event);
  return pieces;
}

export const textOf = (pieces) => pieces.map((piece) => piece.text).join("");
