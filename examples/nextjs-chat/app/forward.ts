/** Forwards a request to Holdfast, in the name of this application's user. */
const HOLDFAST = process.env.HOLDFAST_URL ?? "http://127.0.0.1:8080";

const REQUEST_HEADERS = ["accept", "content-type", "idempotency-key", "last-event-id"];
const ANSWER_HEADERS = ["cache-control", "content-type", "retry-after", "x-accel-buffering", "x-run-id", "x-vercel-ai-ui-message-stream"];

/** Returns the headers that name the user for Holdfast. An application reads its own session here. */
function credentialsOf(_request: Request): Record<string, string> {
  return { "x-user": "demo" };
}

function picked(headers: Headers, names: string[]): [string, string][] {
  return names.flatMap((name) => (headers.has(name) ? [[name, headers.get(name)!] as [string, string]] : []));
}

export async function forward(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const headers = { ...Object.fromEntries(picked(request.headers, REQUEST_HEADERS)), ...credentialsOf(request) };
  // The body passes through while it arrives, and Holdfast refuses one that is too large. The types lack `duplex`.
  const stream = request.method === "POST" ? { body: request.body, duplex: "half" } : {};
  const init: RequestInit = { method: request.method, headers, signal: request.signal, cache: "no-store", ...stream };
  try {
    const answer = await fetch(`${HOLDFAST}${pathname}${search}`, init);
    return new Response(answer.body, { status: answer.status, headers: picked(answer.headers, ANSWER_HEADERS) });
  } catch {
    // The transport tries again after 503.
    return Response.json({ code: "holdfast_away", detail: "Holdfast does not answer." }, { status: 503 });
  }
}
