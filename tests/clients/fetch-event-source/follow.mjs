// Starts a run and follows it with fetch-event-source, which repeats its POST when the stream breaks.
import { fetchEventSource } from "@microsoft/fetch-event-source";

/** Resolves after the last event. Calls `apply` with each event. */
export function start(url, input, key, apply) {
  const ended = new AbortController();
  let cursor = "0-0";
  return fetchEventSource(url, {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ input }),
    signal: ended.signal,
    openWhenHidden: true,
    // The package moves its own cursor at the `id:` of a frame, which may never be complete.
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, "last-event-id": cursor } }),
    async onopen({ status }) {
      if (status !== 200) throw Object.assign(new Error(`answered ${status}`), { status });
    },
    onmessage(frame) {
      if (!frame.data) return;
      apply(JSON.parse(frame.data));
      cursor = frame.id;
      if (["run.completed", "run.failed", "run.cancelled"].includes(frame.event)) ended.abort();
    },
    onerror(error) {
      if (error.status < 500) throw error;
    },
  });
}
