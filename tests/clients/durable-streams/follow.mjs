// Follows a run with the official client of Durable Streams, as an application would, and says what it was given: a line of
// JSON for each batch, and for whatever else happens. Then it resumes at the offset of each batch, and compares.
//
//     node follow.mjs <url> <long-poll|sse>
import { DurableStream, stream } from "@durable-streams/client";

const [url, live] = process.argv.slice(2);
const say = (line) => console.log(JSON.stringify(line));
const ids = (items) => items.map((item) => item.id);
const batches = [];
let offset = "-1";
let closed = false;

// The batches of one session, until the stream is closed; `response.closed` alone may be resolved before the last batch.
const session = (response) =>
  new Promise((resolve, reject) => {
    let broken = false;
    response.subscribeJson((batch) => {
      if (broken) return;
      ({ offset, streamClosed: closed } = batch);
      batches.push({ offset, ids: ids(batch.items) });
      say({ items: batch.items, offset, upToDate: batch.upToDate, closed });
      if (closed) resolve();
    });
    response.closed.catch((error) => {
      broken = true;
      reject(error);
    });
  });

// The client comes back by itself when a connection is refused or ends; when one breaks in mid-body, it is up to us.
while (!closed) {
  try {
    await session(await stream({ url, offset, live }));
  } catch (error) {
    if (error.status >= 400 && error.status < 500) throw error;
    say({ broken: String(error) });
  }
}

const whole = ids(await (await stream({ url, live: false })).json());
const same = (what, got, expected) => {
  if (got.join() !== expected.join()) throw new Error(`${what}: got ${got}, expected ${expected}`);
};
same("followed", batches.flatMap((batch) => batch.ids), whole);
let read = 0;
for (const batch of batches) {
  read += batch.ids.length;
  const rest = await (await stream({ url, offset: batch.offset, live: false })).json();
  same(`resumed at ${batch.offset}`, ids(rest), whole.slice(read));
}
const head = await DurableStream.head({ url });
say({ resumed: batches.length, head: { offset: head.offset, closed: head.streamClosed, contentType: head.contentType } });
