// Follows a run with the official client of Durable Streams, which comes back by itself where a connection is refused or ends.
import { stream } from "@durable-streams/client";

/** Resolves after the last event; `apply` is called with some of them, and the offset behind them. */
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
      // In mid-body; what comes behind the last batch is asked for again.
      response.closed.catch(() => ended((broken = true)));
    });
  }
}
