import type { ServerResponse } from "node:http";

import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { TestServer, type RecordedRequest, cut, refuse } from "./fixture.js";
import { type Begun, PIECE_BYTES, type Uploading, dispositionOf, uploadFile } from "./upload.js";

let server: TestServer;
/** Bytes of the file that the server has. */
let received: number;
/** Handles a request instead of the server. */
let trouble: ((request: RecordedRequest, response: ServerResponse) => boolean | Promise<boolean>) | undefined;

const SIZE = 2 * PIECE_BYTES + 10;

beforeEach(async () => {
  received = 0;
  trouble = undefined;
  server = await TestServer.start(async (request, response) => {
    if (await trouble?.(request, response)) return;
    if (request.method === "HEAD") return void response.writeHead(409, { "upload-offset": String(received) }).end();
    const [, from, end, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(String(request.headers["content-range"]))!.map(Number) as [number, number, number, number];
    if (from !== received) return refuse(response, 409, "upload_offset");
    received = end + 1;
    const isWhole = received === total;
    response.writeHead(isWhole ? 201 : 202, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "f", name: "n", media_type: "text/plain", bytes: total, received, sha256: isWhole ? "abc" : null }));
  });
});
afterEach(() => server.stop());

function upload(size: number, begun: Begun = { key: "k", received: 0 }, inTurn?: Uploading["inTurn"]) {
  const seen: number[] = [];
  const abort = new AbortController();
  const stored = uploadFile({ baseUrl: server.url }, new Blob(["x".repeat(size)]), "tide.txt", { signal: abort.signal, begun, onProgress: (bytes) => seen.push(bytes), delay: () => 1, patience: 0, inTurn });
  return { stored, seen, abort, begun };
}
const ranges = () => server.requests.filter(({ method }) => method !== "HEAD").map(({ method, headers }) => `${method} ${headers["content-range"]}`);

it("a small file is one request, with its name and a key", async () => {
  expect(await upload(5).stored).toMatchObject({ id: "f", sha256: "abc" });
  expect(ranges()).toEqual(["POST bytes 0-4/5"]);
  expect(server.requests[0]).toMatchObject({ path: "/v1/files", body: "xxxxx", headers: { "idempotency-key": "k", "content-disposition": "attachment; filename*=UTF-8''tide.txt" } });
});

it("a large file goes in pieces", async () => {
  const { stored, seen } = upload(SIZE);
  await stored;
  expect(ranges()).toEqual([`POST bytes 0-1048575/${SIZE}`, `PATCH bytes 1048576-2097151/${SIZE}`, `PATCH bytes 2097152-2097161/${SIZE}`]);
  expect(seen).toEqual([PIECE_BYTES, 2 * PIECE_BYTES, SIZE]);
});

it("a caller may decide when a file's first request is made", async () => {
  const turns: (() => void)[] = [];
  const inTurn = async <T>(request: () => Promise<T>) => {
    await new Promise<void>((turn) => turns.push(turn));
    return request();
  };
  const { stored } = upload(SIZE, undefined, inTurn);
  expect([turns.length, server.requests.length]).toEqual([1, 0]);
  turns[0]!();
  await stored;
  expect([turns.length, server.requests.length]).toEqual([1, 3]);
});

it("a broken connection goes on where the server has stopped", async () => {
  let failures = 0;
  trouble = async ({ method }, response) => {
    if (method !== "PATCH" || failures > 0) return false;
    failures += 1;
    // The server has the piece, and only its answer is lost.
    received += PIECE_BYTES;
    await cut(response);
    return true;
  };
  await upload(SIZE).stored;
  expect(ranges()).toEqual([`POST bytes 0-1048575/${SIZE}`, `PATCH bytes 1048576-2097151/${SIZE}`, `PATCH bytes 2097152-2097161/${SIZE}`]);
});

it("a first request whose answer is lost is repeated with its key", async () => {
  trouble = async (_, response) => {
    if (server.requests.length > 1) return false;
    await cut(response);
    return true;
  };
  await upload(5).stored;
  expect(server.requests.map(({ headers }) => headers["idempotency-key"])).toEqual(["k", "k"]);
});

it("a refusal ends the upload at once", async () => {
  trouble = (_, response) => (refuse(response, 415, "file_type_refused"), true);
  await expect(upload(5).stored).rejects.toMatchObject({ code: "file_type_refused", message: "It is file_type_refused." });
  expect(server.requests).toHaveLength(1);
});

it("an upload gives up after five failures, and another try continues it", async () => {
  trouble = ({ method }, response) => (method === "PATCH" ? (refuse(response, 503, "files_unavailable"), true) : false);
  const { stored, begun } = upload(SIZE);
  await expect(stored).rejects.toMatchObject({ code: "files_unavailable" });
  expect(ranges()).toHaveLength(6);
  trouble = undefined;
  await upload(SIZE, begun).stored;
  expect(ranges().slice(6)).toEqual([`PATCH bytes 1048576-2097151/${SIZE}`, `PATCH bytes 2097152-2097161/${SIZE}`]);
});

it("an upload outlasts an outage within its patience", async () => {
  let refusals = 0;
  trouble = ({ method }, response) => (method === "PATCH" && (refusals += 1) <= 20 ? (refuse(response, 503, "files_unavailable"), true) : false);
  const options = { patience: 60_000, delay: () => 1 };
  expect(await uploadFile({ baseUrl: server.url }, new Blob(["x".repeat(SIZE)]), "tide.txt", options)).toMatchObject({ sha256: "abc" });
  expect(refusals).toBe(22);
});

it("an upload does not wait an hour for a server that says so", async () => {
  trouble = (_, response) => (refuse(response, 503, "files_unavailable", { "retry-after": "3600" }), true);
  await expect(uploadFile({ baseUrl: server.url }, new Blob(["x"]), "tide.txt")).rejects.toMatchObject({ code: "files_unavailable", retryAfter: 3600 });
  expect(server.requests).toHaveLength(1);
});

it("an error of the caller's callback ends the upload", async () => {
  const onProgress = () => {
    throw new Error("bug");
  };
  await expect(uploadFile({ baseUrl: server.url }, new Blob(["x".repeat(SIZE)]), "tide.txt", { onProgress })).rejects.toThrow("bug");
  expect(server.requests).toHaveLength(1);
});

it("an upload that the server has forgotten begins again with another key, and not without end", async () => {
  trouble = ({ method }, response) => {
    if (method === "POST") return false;
    received = 0;
    if (method === "HEAD") return (response.writeHead(404).end(), true);
    return (refuse(response, 503, "files_unavailable"), true);
  };
  await expect(upload(SIZE).stored).rejects.toMatchObject({ code: "files_unavailable" });
  const keys = server.requests.filter(({ method }) => method === "POST").map(({ headers }) => headers["idempotency-key"]);
  expect([keys.length, new Set(keys).size]).toEqual([5, 5]);
});

it("a caller that gives up ends the upload", async () => {
  trouble = () => true;
  const { stored, abort } = upload(5);
  await vi.waitFor(() => expect(server.requests).toHaveLength(1));
  abort.abort(new Error("gone"));
  await expect(stored).rejects.toThrow("gone");
});

it.each([
  ["plan.pdf", "plan.pdf"],
  ["潮汐 (1)'s*.png", "%E6%BD%AE%E6%B1%90%20%281%29%27s%2A.png"],
])("the name %s is written as %s", (name, written) => {
  expect(dispositionOf(name)).toBe(`attachment; filename*=UTF-8''${written}`);
});
