import { once } from "node:events";
import type { ServerResponse } from "node:http";

import type { UIMessage, UIMessageChunk } from "ai";
import { afterEach, expect, it, vi } from "vitest";

import { TestServer, cut, refuse, stream, write, type Handler } from "../fixture.js";
import { merged } from "./merge.js";
import { CAUGHT_UP } from "./past.js";
import { UNREACHABLE } from "../problem.js";
import { AnswerTakenBack } from "./line.js";
import { HoldfastTransport, type TransportOptions } from "./transport.js";

let server: TestServer;
afterEach(async () => {
  vi.restoreAllMocks();
  await server.stop();
});

const CHUNKS: UIMessageChunk[] = [
  { type: "start", messageId: "answer" },
  { type: "start-step" },
  { type: "text-start", id: "text" },
  ...Array.from({ length: 12 }, (_, n): UIMessageChunk => ({ type: "text-delta", id: "text", delta: `wörter${n} ` })),
  { type: "text-end", id: "text" },
  { type: "finish-step" },
  { type: "finish", finishReason: "stop" },
];

const frame = (chunk: UIMessageChunk) => `data: ${JSON.stringify(chunk)}\n\n`;
const SAME = merged(CHUNKS);

/** Some chunks share the event of the next chunk, and only the last chunk of an event has its id. */
const hasId = (index: number) => index % 3 !== 2;
const frames = (from: number, to = CHUNKS.length, attempt = 1) =>
  CHUNKS.slice(from, to)
    .map((chunk, index) => (hasId(from + index) ? `id: ${attempt}-${from + index}\n` : "") + frame(chunk))
    .join("");
const DONE = "data: [DONE]\n\n";
const EVENTS = "/v1/runs/run-1/events?wire=ai-sdk";

const question: UIMessage = { id: "question", role: "user", parts: [{ type: "text", text: "hi" }] };

async function transport(handlers: Handler[], options: TransportOptions = {}) {
  server = await TestServer.start(...handlers);
  const connections: string[] = [];
  const made = new HoldfastTransport<UIMessage>({
    baseUrl: `${server.url}/`,
    delay: () => 5,
    silence: 2_000,
    onConnection: (state) => connections.push(state),
    ...options,
  });
  const send = (headers?: Record<string, string>) =>
    made.sendMessages({ chatId: "chat", trigger: "submit-message", messageId: undefined, messages: [question], abortSignal: undefined, headers });
  return { made, send, resume: (headers?: Record<string, string>) => made.reconnectToStream({ chatId: "chat", headers }), cancel: (runId?: string) => made.cancel("chat", runId), connections };
}

/** The result does not show the number of a text's pieces. */
async function all(stream: ReadableStream<UIMessageChunk> | null): Promise<UIMessageChunk[]> {
  const chunks: UIMessageChunk[] = [];
  for await (const chunk of stream!) chunks.push(chunk);
  return merged(chunks);
}

const whole: Handler = (_, response) => {
  stream(response);
  response.end(frames(0) + DONE);
};

/** Continues after the event that the request names. */
const rest: Handler = ({ headers }, response) => {
  const id = headers["last-event-id"];
  stream(response);
  response.end(frames(typeof id === "string" ? Number(id.split("-")[1]) + 1 : 0) + DONE);
};

it("the transport posts only the newest message, with its own idempotency key", async () => {
  const { send } = await transport([whole], { headers: () => ({ authorization: "Bearer t" }), timeZone: "Asia/Tokyo", body: () => ({ agentId: "a" }) });
  expect(await all(await send())).toEqual(SAME);
  await all(await send({ "idempotency-key": "given" }));
  const [first, second] = server.requests;
  expect(JSON.parse(first!.body)).toEqual({ id: "chat", message: question, trigger: "submit-message", agentId: "a" });
  expect(first!.headers).toMatchObject({ authorization: "Bearer t", "content-type": "application/json", "time-zone": "Asia/Tokyo" });
  expect(first!.headers["idempotency-key"]).toMatch(/^[0-9a-f-]{36}$/);
  expect(second!.headers["idempotency-key"]).toBe("given");
});

it("the reader receives equal chunks wherever the connection breaks", async () => {
  const bytes = Buffer.from(frames(0) + DONE);
  for (let at = 0; at < bytes.length; at += 29) {
    const { send, connections } = await transport([
      async (_, response) => {
        stream(response);
        response.write(bytes.subarray(0, at));
        await cut(response);
      },
      rest,
    ]);
    expect(await all(await send()), `cut after ${at} bytes`).toEqual(SAME);
    expect(server.requests[1]!.path).toBe(server.requests[1]!.headers["last-event-id"] ? EVENTS : "/api/chat");
    expect(connections).toEqual(["connected", "reconnecting", "connected"]);
    await server.stop();
  }
});

it("the headers of a send and of a resumption are those of their continuations", async () => {
  const begun: Handler = async (_, response) => {
    stream(response);
    await write(response, frames(0, 5));
    await cut(response);
  };
  const { send, resume } = await transport([begun, rest, begun, rest], { headers: () => ({ authorization: "Bearer new" }) });
  expect(await all(await send({ "x-user": "ann", authorization: "Bearer old" }))).toEqual(SAME);
  await all(await resume({ "x-user": "ann" }));
  expect(server.requests.map(({ headers }) => [headers["x-user"], headers.authorization])).toEqual(Array(4).fill(["ann", "Bearer new"]));
  expect(server.requests[1]!.headers).not.toHaveProperty("idempotency-key");
});

it("the transport posts the files of a new message, and no files of a message that the server has", async () => {
  const { made } = await transport([whole]);
  const file = { type: "file" as const, mediaType: "text/plain", url: "data:,x" };
  const withFile = { ...question, parts: [file, ...question.parts] };
  const sending = { chatId: "chat", messageId: undefined, messages: [withFile], abortSignal: undefined };
  await all(await made.sendMessages({ ...sending, trigger: "submit-message" }));
  await all(await made.sendMessages({ ...sending, trigger: "regenerate-message" }));
  expect(server.requests.map(({ body }) => JSON.parse(body).message.parts)).toEqual([withFile.parts, question.parts]);
});

it("the transport resumes a stream that ends without DONE", async () => {
  const { send } = await transport([
    (_, response) => {
      stream(response);
      response.end(frames(0, 5));
    },
    rest,
  ]);
  expect(await all(await send())).toEqual(SAME);
});

it("the transport resumes a silent stream", async () => {
  const silent: Handler = async (_, response) => {
    stream(response);
    await write(response, frames(0, 7));
  };
  const { send } = await transport([silent, rest], { silence: 200 });
  expect(await all(await send())).toEqual(SAME);
});

const ATTEMPT: UIMessageChunk = { type: "data-attempt", data: { attempt: 2, base: "1-2", crashes: 1, maxCrashes: 3 } };

it.each<[string, Handler, unknown]>([
  ["continues in another attempt", (_, response) => (stream(response), void response.end(frame(ATTEMPT) + frames(6, 18, 2) + DONE)), ATTEMPT.data],
  ["ended without them", (_, response) => refuse(response, 400, "invalid_event_id"), undefined],
])("a run that lost received chunks, and %s, makes the transport take the answer back", async (_, second, attempt) => {
  const taken: unknown[] = [];
  const { send } = await transport(
    [
      async (_, response) => {
        stream(response);
        await write(response, frames(0, 8));
        await cut(response);
      },
      second,
    ],
    { onTakenBack: (attempt) => taken.push(attempt) },
  );
  expect(await all(await send())).toEqual(merged(CHUNKS.slice(0, 8)));
  expect(taken).toEqual([attempt]);
});

it("a run that has ended has no more chunks for a client with all of them", async () => {
  const { send } = await transport([
    async (_, response) => {
      stream(response);
      await write(response, frames(0));
      await cut(response);
    },
    (_, response) => void response.writeHead(204).end(),
  ]);
  expect(await all(await send())).toEqual(merged(CHUNKS.slice(0, 17)));
});

it("the transport waits for servers that are away or too busy", async () => {
  const { send } = await transport([
    async (_, response) => {
      stream(response);
      await write(response, frames(0, 4));
      await cut(response);
    },
    (_, response) => refuse(response, 503, "database_away", { "retry-after": "0" }),
    (_, response) => refuse(response, 429, "rate_limited", { "retry-after": "0" }),
    (_, response) => refuse(response, 502, "bad_gateway"),
    (_, response) => void response.socket?.resetAndDestroy(),
    rest,
  ]);
  expect(await all(await send())).toEqual(SAME);
  expect(server.requests.slice(1).map(({ path }) => path)).toEqual(Array(5).fill(EVENTS));
});

it("the transport repeats a question that may not have arrived, with one key", async () => {
  const { send } = await transport([(_, response) => void response.socket?.resetAndDestroy(), (_, response) => refuse(response, 500, "internal_error"), whole]);
  expect(await all(await send())).toEqual(SAME);
  const keys = server.requests.map(({ method, headers }) => `${method} ${headers["idempotency-key"]}`);
  expect(keys).toHaveLength(3);
  expect(new Set(keys).size).toBe(1);
});

it("the transport repeats a question when a server's Retry-After says so, with one key", async () => {
  const waits: (number | undefined)[] = [];
  const away: Handler = (_, response) => refuse(response, 503, "database_away", { "retry-after": "1" });
  const { send } = await transport([away, whole], { onConnection: (state, wait) => state === "reconnecting" && void waits.push(wait) });
  expect(await all(await send())).toEqual(SAME);
  expect(waits).toEqual([1_000]);
  expect(new Set(server.requests.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
});

it("the transport does not repeat a question whose run has failed", async () => {
  const failed: Handler = (_, response) => {
    response.writeHead(500, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ status: 500, code: "model_failed", detail: "It failed.", run: "/v1/runs/1" }));
  };
  const { send } = await transport([failed]);
  await expect(send()).rejects.toMatchObject({ status: 500, code: "model_failed", run: "/v1/runs/1" });
  expect(server.requests).toHaveLength(1);
});

it("an endless transport waits past its deadline for a server that is away", async () => {
  let now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now);
  const waited: number[] = [];
  const delay = (_: number, after: number) => {
    waited.push(after);
    now += 40;
    return 5;
  };
  const gone: Handler = (_, response) => void response.socket?.resetAndDestroy();
  const { send } = await transport([gone, gone, gone, gone, gone, gone, whole], { patience: 100, delay, isEndless: true });
  expect(await all(await send())).toEqual(SAME);
  expect(Math.max(...waited)).toBeGreaterThan(100);
});

it.each([
  [429, "rate_limited", { "retry-after": "7" }, 7],
  [400, "empty_content", {}, undefined],
  [401, "unauthenticated", {}, undefined],
])("the transport does not repeat a question that the server refuses with %i", async (status, code, headers, retryAfter) => {
  const { send } = await transport([(_, response) => refuse(response, status, code, headers as Record<string, string>)]);
  await expect(send()).rejects.toMatchObject({ status, code, retryAfter });
  expect(server.requests).toHaveLength(1);
});

it("a stream that is gone fails with the server's reason", async () => {
  const { send } = await transport([
    async (_, response) => {
      stream(response);
      await write(response, frames(0, 4));
      await cut(response);
    },
    (_, response) => refuse(response, 410, "events_gone"),
  ]);
  await expect(send().then(all)).rejects.toMatchObject({ status: 410, code: "events_gone" });
});

it("the transport gives up at its deadline", async () => {
  let now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now);
  const delay = () => {
    now += 40;
    return 5;
  };
  const { send } = await transport([(_, response) => void response.socket?.resetAndDestroy()], { patience: 100, delay });
  await expect(send()).rejects.toMatchObject({ status: 0, code: UNREACHABLE });
  expect(server.requests).toHaveLength(4);
});

it("the transport gives up on a proxy whose server stays away", async () => {
  let now = Date.now();
  vi.spyOn(Date, "now").mockImplementation(() => now);
  const delay = () => {
    now += 40;
    return 5;
  };
  const { send } = await transport([(_, response) => refuse(response, 502, "bad_gateway")], { patience: 100, delay });
  await expect(send()).rejects.toMatchObject({ status: 502 });
  expect(server.requests).toHaveLength(4);
});

it("a caller that aborts gets its reason from the stream, and keeps no listener", async () => {
  const begun: Handler = async (_, response) => {
    stream(response);
    await write(response, frames(0, 4));
  };
  const { made } = await transport([whole, begun]);
  const abort = new AbortController();
  const [add, remove] = [vi.spyOn(abort.signal, "addEventListener"), vi.spyOn(abort.signal, "removeEventListener")];
  const sending = { chatId: "chat", trigger: "submit-message" as const, messageId: undefined, messages: [question], abortSignal: abort.signal };
  await all(await made.sendMessages(sending));
  const chunks = await made.sendMessages(sending);
  abort.abort(new Error("gone"));
  await expect(all(chunks)).rejects.toThrow("gone");
  expect([add.mock.calls.length, remove.mock.calls.length]).toEqual([2, 2]);
});

it("the transport does not give up after a computer's sleep", async () => {
  let response: ServerResponse | undefined;
  const { send, connections } = await transport([
    async (_, first) => {
      stream(first);
      await write(first, frames(0, 4));
      response = first;
    },
    rest,
  ]);
  const reading = send().then(all);
  await vi.waitFor(() => expect([response, connections]).toMatchObject([{}, ["connected"]]), { timeout: 10_000, interval: 10 });
  const now = Date.now;
  vi.spyOn(Date, "now").mockImplementation(() => now() + 600_000);
  response!.socket?.resetAndDestroy();
  expect(await reading).toEqual(SAME);
});

it("the transport rejects a response that is no event stream", async () => {
  const { send } = await transport([(_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>Sign in</p>")]);
  await expect(send()).rejects.toMatchObject({ code: "not_a_stream" });
});

it("a reader that cancels ends the connection", async () => {
  let closed: Promise<unknown> | undefined;
  const { send } = await transport([
    async (_, response) => {
      closed = once(response, "close");
      stream(response);
      await write(response, frames(0, 4));
    },
  ]);
  const reader = (await send()).getReader();
  await reader.read();
  await reader.cancel();
  await closed;
  expect(server.requests).toHaveLength(1);
});

it("cancel posts to the chat, and rejects with the server's refusal", async () => {
  const { cancel } = await transport([(_, response) => void response.end("{}"), (_, response) => refuse(response, 404, "not_found")]);
  await cancel("run-1");
  await expect(cancel()).rejects.toMatchObject({ status: 404, code: "not_found" });
  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["POST /api/chat/chat/stop?runId=run-1", "POST /api/chat/chat/stop"]);
});

it("resuming returns null if the server has no stream", async () => {
  const { resume } = await transport([(_, response) => void response.writeHead(204).end()]);
  expect(await resume()).toBeNull();
  expect(server.requests[0]!.path).toBe("/api/chat/chat/stream");
});

it("a replay brings the past in few chunks, marks its end, and continues", async () => {
  const { resume } = await transport([
    async (_, response) => {
      stream(response);
      await write(response, frames(0, 5));
      setTimeout(() => response.end(frames(5) + DONE), 120);
    },
  ]);
  const chunks = await all(await resume());
  const at = chunks.findIndex(({ type }) => type === CAUGHT_UP);
  expect(chunks.slice(0, at)).toEqual([...CHUNKS.slice(0, 3), { type: "text-delta", id: "text", delta: "wörter0 wörter1 " }]);
  expect(chunks.slice(at + 1)).toEqual(merged(CHUNKS.slice(5)));
});

it("a replay continues after its newest event when its connection breaks", async () => {
  const { resume } = await transport([
    async (_, response) => {
      stream(response);
      await write(response, frames(0, 9) + frame(CHUNKS[9]!).slice(0, 20));
      await cut(response);
    },
    rest,
  ]);
  const chunks = await all(await resume());
  const text = chunks.flatMap((chunk) => (chunk.type === "text-delta" ? [chunk.delta] : [])).join("");
  expect(text).toBe((SAME[3] as { delta: string }).delta);
  expect(chunks.filter(({ type }) => type === "start")).toHaveLength(1);
  expect(server.requests.map(({ path, headers }) => [path, headers["last-event-id"]])).toEqual([
    ["/api/chat/chat/stream", undefined],
    [EVENTS, "1-7"],
  ]);
});

it("a new attempt ends the stream if the caller rebuilds it, and fails it if not", async () => {
  const handler: Handler = (_, response) => {
    stream(response);
    response.end(frames(0, 5) + `id: 2-1\n${frame(ATTEMPT)}` + frames(5) + DONE);
  };
  const taken: unknown[] = [];
  const rebuilding = await transport([handler], { onTakenBack: (attempt) => taken.push(attempt) });
  expect(await all(await rebuilding.send())).toEqual(merged(CHUNKS.slice(0, 5)));
  expect(taken).toEqual([ATTEMPT.data]);
  await server.stop();
  const failing = await transport([handler]);
  await expect(failing.send().then(all)).rejects.toBeInstanceOf(AnswerTakenBack);
});

it("a lost answer whose run has ended fails if the caller does not rebuild it", async () => {
  const { resume } = await transport([
    async (_, response) => {
      stream(response);
      await write(response, frames(0, 9));
      await cut(response);
    },
    (_, response) => refuse(response, 400, "invalid_event_id"),
  ]);
  await expect(resume().then(all)).rejects.toMatchObject({ name: "AnswerTakenBack", code: "superseded" });
});
