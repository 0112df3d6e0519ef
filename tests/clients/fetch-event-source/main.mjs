// Starts and follows a run with the package `@microsoft/fetch-event-source`: main.mjs BASE {"input": …, "key": …}
import { fetchEventSource } from "@microsoft/fetch-event-source";

// The package was written for browsers; of a window it needs what Node has globally.
globalThis.window = globalThis;

const [base, parameters] = process.argv.slice(2);
const { input, key } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const at = (id) => id.split("-").reduce((attempt, n) => attempt * 2 ** 32 + Number(n), 0);
let pieces = [];
const apply = (event) => {
  if (event.base) pieces = pieces.filter((piece) => at(piece.id) <= at(event.base));
  if (event.type === "message.delta") pieces.push(event);
  report({ got: event });
};

const ended = new AbortController();
await fetchEventSource(`${base}/v1/runs`, {
  method: "POST",
  headers: { accept: "text/event-stream", "content-type": "application/json", "idempotency-key": key },
  body: JSON.stringify({ input }),
  openWhenHidden: true,
  signal: ended.signal,
  onmessage(frame) {
    if (!frame.data) return;
    const event = JSON.parse(frame.data);
    apply(event);
    if (["run.completed", "run.failed", "run.cancelled"].includes(event.type)) ended.abort();
  },
  onerror() {},
});
report({ end: pieces.map((piece) => piece.text).join("") });
