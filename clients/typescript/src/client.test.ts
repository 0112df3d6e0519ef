import { once } from "node:events";
import type { ServerResponse } from "node:http";

import { afterEach, expect, it } from "vitest";

import { type ClientOptions, HoldfastClient } from "./client.js";
import { TestServer, type Handler, refuse, stream, write } from "./fixture.js";

let server: TestServer;
afterEach(() => server.stop());

async function client(handlers: Handler[], options: ClientOptions = {}) {
  server = await TestServer.start(...handlers);
  return new HoldfastClient({ baseUrl: server.url, patience: 1_000, ...options });
}

const json = (value: unknown) => (_: unknown, response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
};
const html: Handler = (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>Sign in</p>");
const broken: Handler = async (_, response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
  await write(response, '{"run":');
  response.socket?.resetAndDestroy();
};
const event = (id: string, type: string) => `id: ${id}\ndata: ${JSON.stringify({ id, type, base: "0-0" })}\n\n`;
const all = async (client: HoldfastClient) => {
  const ids: string[] = [];
  for await (const { id } of client.events("r")) ids.push(id);
  return ids;
};

it("a message whose answer breaks in mid-body is posted again, with its key", async () => {
  const holdfast = await client([broken, json({ run: { id: "r" } })]);
  expect(await holdfast.startRun({ input: "hi" })).toEqual({ run: { id: "r" } });
  const keys = server.requests.map(({ headers }) => headers["idempotency-key"]);
  expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
});

it("a download that breaks begins again", async () => {
  const holdfast = await client([broken, (_, response) => void response.end("a file")]);
  expect(await (await holdfast.download("f")).text()).toBe("a file");
});

it("a request that must not be repeated fails when its answer breaks", async () => {
  const holdfast = await client([broken]);
  await expect(holdfast.createConversation()).rejects.toMatchObject({ name: "Problem", code: "unreachable" });
  expect(server.requests).toHaveLength(1);
});

it("a page instead of the server's answer is a problem, for a call and for a stream", async () => {
  const holdfast = await client([html]);
  await expect(holdfast.run("r")).rejects.toMatchObject({ name: "Problem", code: "not_json" });
  await expect(all(holdfast)).rejects.toMatchObject({ name: "Problem", code: "not_a_stream" });
  await expect(holdfast.upload(new Blob(["x"]), "x.txt")).rejects.toMatchObject({ code: "not_json" });
  expect(server.requests).toHaveLength(3);
});

it("a page that never ends is left when it is no answer", async () => {
  let closed: Promise<unknown> | undefined;
  const endless: Handler = async (_, response) => {
    closed = once(response, "close");
    response.writeHead(200, { "content-type": "text/html" });
    await write(response, "<p>");
  };
  const holdfast = await client([endless]);
  await expect(all(holdfast)).rejects.toMatchObject({ code: "not_a_stream" });
  await closed;
});

it("a stream without any byte is no connection", async () => {
  const headOnly: Handler = async (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    response.socket?.end();
  };
  const holdfast = await client([headOnly]);
  await expect(all(holdfast)).rejects.toMatchObject({ name: "ConnectionLost", cursor: "0-0" });
  expect(server.requests.length).toBeLessThan(8);
});

it("a silent server is given up within twice the patience", async () => {
  const holdfast = await client([() => {}], { patience: 300 });
  await expect(holdfast.run("r")).rejects.toMatchObject({ name: "ConnectionLost" });
  expect(server.requests.length).toBeLessThanOrEqual(2);
});

it("a refusal for longer than the patience is the server's own problem", async () => {
  const holdfast = await client([(_, response) => refuse(response, 429, "rate_limited", { "retry-after": "3600" })]);
  await expect(holdfast.startRun({ input: "hi" })).rejects.toMatchObject({ status: 429, code: "rate_limited", retryAfter: 3600 });
});

it("a caller's own mistake is no lost connection", async () => {
  const bug = () => {
    throw new Error("bug");
  };
  const holdfast = await client([json({})], { headers: bug });
  await expect(holdfast.run("r")).rejects.toThrow("bug");
  await expect(all(holdfast)).rejects.toThrow("bug");
  await expect(new HoldfastClient().startRun({ input: "hi" })).rejects.toThrow("baseUrl");
  expect(server.requests).toHaveLength(0);
});

it("a caller that aborts a call gets its reason", async () => {
  const holdfast = await client([() => {}], { patience: 60_000 });
  const abort = new AbortController();
  const waiting = holdfast.wait("r", { signal: abort.signal });
  setTimeout(() => abort.abort(new Error("gone")), 20);
  await expect(waiting).rejects.toThrow("gone");
});

it("a snapshot has the cursor that continues it", async () => {
  const holdfast = await client([json({ snapshot: { text: "so far" }, last_event_id: "1-7" })]);
  expect(await holdfast.snapshot("r")).toEqual({ snapshot: { text: "so far" }, last_event_id: "1-7" });
  expect(server.requests[0]!.path).toBe("/v1/runs/r/events?snapshot=true");
});

it("events come once each, over as many connections as they need", async () => {
  const part = (text: string): Handler => (_, response) => {
    stream(response);
    response.end(text);
  };
  const holdfast = await client([
    part(event("0-1", "run.queued") + event("1-1", "attempt.started")),
    part(event("1-1", "attempt.started").slice(0, 20)),
    part(event("1-2", "run.completed")),
  ]);
  expect(await all(holdfast)).toEqual(["0-1", "1-1", "1-2"]);
  expect(server.requests.map(({ headers }) => headers["last-event-id"])).toEqual(["0-0", "1-1", "1-1"]);
});
