// Follows a run with the official client of Durable Streams, which reconnects by itself if a connection is refused or ends.
import { stream } from "@durable-streams/client";

/** Resolves after the last event. Calls `apply` with some events and the offset after them. */
export async function follow(url, live, apply) {
  for (let offset = "-1", over = false; !over; ) {
    const response = await stream({ url, offset, live });
    await new Promise((ended) => {
      let broken = false;
      response.subscribeJson((batch) => {
        if (broken) return;
        ({ offset, streamClosed: over } = batch);
        apply(batch.items, offset);
        if (over) ended();
      });
      // The connection broke in mid-body; the loop requests the events after the last batch again.
      response.closed.catch(() => ended((broken = true)));
    });
  }
}
