// Which pieces make the answer. Whoever follows a run on the native wire calls this with each event, in order.
const at = (id) => id.split("-").reduce((attempt, n) => attempt * 2 ** 32 + Number(n), 0);
let pieces = [];

/** The answer so far, after this event. */
export function fold(event) {
  if (event.base) pieces = pieces.filter((piece) => at(piece.id) <= at(event.base));
  if (event.type === "message.delta") pieces.push(event);
  return pieces.map((piece) => piece.text).join("");
}
