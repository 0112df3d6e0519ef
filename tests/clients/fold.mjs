// The fold of the native wire: the pieces of text that make up the answer.
const at = (id) => id.split("-").reduce((attempt, n) => attempt * 2 ** 32 + Number(n), 0);

/** Returns the pieces of the answer after this event. */
export function fold(pieces, event) {
  if (event.base) pieces = pieces.filter((piece) => at(piece.id) <= at(event.base));
  if (event.type === "message.delta") pieces.push(event);
  return pieces;
}

export const textOf = (pieces) => pieces.map((piece) => piece.text).join("");
