import { once } from "node:events";

import { afterEach, expect, it, vi } from "vitest";

import { TestServer, cut, refuse, stream, write, type Handler } from "./fixture.js";
import { SILENT, UNREACHABLE, type Problem } from "./problem.js";
import { follow, type Followed, type Following, type Progress } from "./processor.js";

let server: TestServer | undefined;
afterEach(() => server?.stop());

/** Returns everything that the callbacks of one request receive. */
async function observe(handler: Handler, following: Following = {}) {
  server = await TestServer.start(handler);
  const progress: Progress[] = [];
  const problems: Problem[] = [];
  const answers: Followed[] = [];
  const thrown = await follow(server.url, {}, {
    ...following,
    onProgress: (piece) => (progress.push(piece), following.onProgress?.(piece)),
    onError: (problem) => problems.push(problem),
    onComplete: (answer) => answers.push(answer),
  }).then(
    () => undefined,
    (error: unknown) => error,
  );
  return { progress, problems, answers, thrown };
}

it("a caller receives an event stream event by event, and its end", async () => {
  const { progress, answers, thrown } = await observe(async (_, response) => {
    stream(response);
    await write(response, "id: 1-1\ndata: a\n\ndata: b");
    await write(response, "c\n\n");
    response.end();
  });
  expect(progress).toEqual([
    { kind: "event", frame: { id: "1-1", event: undefined, data: "a" } },
    { kind: "event", frame: { id: undefined, event: undefined, data: "bc" } },
  ]);
  expect([answers, thrown]).toEqual([[{ kind: "events" }], undefined]);
});

it("a caller receives a text as it grows, and complete", async () => {
  const { progress, answers } = await observe(async (_, response) => {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" });
    const [first, second] = [Buffer.from("grüße").subarray(0, 3), Buffer.from("grüße").subarray(3)];
    response.write(first);
    setTimeout(() => response.end(second), 30);
  });
  expect(progress.map((piece) => piece.kind === "text" && piece.text).join("|")).toBe("gr|üße");
  expect(answers).toEqual([{ kind: "text", text: "grüße" }]);
});

it("a caller receives JSON when it is complete", async () => {
  const { progress, answers } = await observe((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"a": [1]}');
  });
  expect([progress, answers]).toEqual([[], [{ kind: "json", value: { a: [1] } }]]);
});

it("a response without content is a success", async () => {
  const { answers } = await observe((_, response) => void response.writeHead(204).end());
  expect(answers).toEqual([{ kind: "nothing" }]);
});

it("a refusal is a problem", async () => {
  const { problems, answers, thrown } = await observe((_, response) => refuse(response, 404, "run_not_found"));
  expect(problems).toHaveLength(1);
  expect(thrown).toBe(problems[0]);
  expect(thrown).toMatchObject({ status: 404, code: "run_not_found" });
  expect(answers).toEqual([]);
});

it("a connection reset is a problem, and the earlier progress stays", async () => {
  const { progress, thrown } = await observe(async (_, response) => {
    stream(response);
    await write(response, "data: a\n\ndata: {\"half\":");
    await cut(response);
  });
  expect(progress).toHaveLength(1);
  expect(thrown).toMatchObject({ status: 0, code: UNREACHABLE });
});

it("a server that does not listen is a problem", async () => {
  server = await TestServer.start(() => {});
  const { url } = server;
  await server.stop();
  await expect(follow(url, {})).rejects.toMatchObject({ code: UNREACHABLE });
});

it("silence is a problem, before the head and after", async () => {
  const before = await observe(() => {}, { timeout: 60 });
  expect(before.thrown).toMatchObject({ status: 0, code: SILENT });
  await server?.stop();
  const after = await observe((_, response) => stream(response), { timeout: 60 });
  expect(after.thrown).toMatchObject({ status: 0, code: SILENT });
});

it("heartbeats are no silence", async () => {
  const onLife = vi.fn();
  const { progress, answers } = await observe(
    async (_, response) => {
      stream(response);
      let beats = 0;
      const timer = setInterval(() => {
        response.write(": hb\n");
        beats += 1;
        if (beats < 8) return;
        clearInterval(timer);
        response.end("data: a\n\n");
      }, 100);
    },
    { timeout: 600, onLife },
  );
  expect([progress.length, answers]).toEqual([1, [{ kind: "events" }]]);
  expect(onLife.mock.calls.length).toBeGreaterThan(5);
});

it("an aborting caller receives no problem, and the server sees the hang-up", async () => {
  const caller = new AbortController();
  let closed: Promise<unknown> | undefined;
  const { problems, thrown } = await observe(
    async (_, response) => {
      closed = once(response, "close");
      stream(response);
      await write(response, "data: a\n\n");
    },
    { signal: caller.signal, onProgress: () => caller.abort(new Error("enough")) },
  );
  expect([problems, thrown]).toEqual([[], new Error("enough")]);
  await closed;
});
