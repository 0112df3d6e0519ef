// Follows a run with the package `@durable-streams/client`: main.mjs BASE {"run_id": …, "live": "sse" | "long-poll"}
//
// Then it reads the run again from each offset that it received. Its result has the answer, these rests, and the head.
import { DurableStream, stream } from "@durable-streams/client";

import { fold, textOf } from "../fold.mjs";
import { follow } from "./follow.mjs";

const [base, parameters] = process.argv.slice(2);
const { run_id, live } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const url = `${base}/v1/stream/runs/${run_id}`;
const offsets = [];
let pieces = [];
await follow(url, live, (events, offset) => {
  offsets.push(offset);
  for (const event of events) {
    pieces = fold(pieces, event);
    report({ got: event });
  }
});
const rests = [];
for (const offset of offsets) {
  rests.push({ offset, events: await (await stream({ url, offset, live: false })).json() });
}
const head = await DurableStream.head({ url });
report({ end: { text: textOf(pieces), rests, head: { offset: head.offset, closed: head.streamClosed, contentType: head.contentType } } });
