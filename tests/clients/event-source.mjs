// What EventSource leaves to its user, in a browser and in Node: which events belong to the answer.

/** Follows a run; `show` is called with each event and the answer so far, `over` when there is nothing left. */
export function follow(EventSource, url, show, over) {
  const at = (id) => id.split("-").reduce((attempt, n) => attempt * 2 ** 32 + Number(n), 0);
  let pieces = [];
  const source = new EventSource(url);
  const apply = (frame) => {
    const event = JSON.parse(frame.data);
    if (event.base) pieces = pieces.filter((piece) => at(piece.id) <= at(event.base));
    if (event.type === "message.delta") pieces.push(event);
    show(event, pieces.map((piece) => piece.text).join(""));
  };
  const types = `run.queued attempt.started context.usage step.started message.delta reasoning.delta tool_call.delta
    tool_call.started tool_call.completed approval.requested approval.resolved step.completed warning.raised
    message.completed run.completed run.failed run.cancelled`;
  for (const type of types.split(/\s+/)) source.addEventListener(type, apply);
  source.onerror = () => source.readyState === EventSource.CLOSED && over();
}
