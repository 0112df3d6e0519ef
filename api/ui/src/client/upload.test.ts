import { TestServer } from "holdfast-client/fixture";
import { notBegun } from "holdfast-client/upload";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { uploadFile } from "./upload";

let server: TestServer;
let [open, most] = [0, 0];

beforeEach(async () => {
  server = await TestServer.start(async (_, response) => {
    open += 1;
    most = Math.max(most, open);
    await new Promise((later) => setTimeout(later, 5));
    open -= 1;
    response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify({ id: "f", sha256: "abc", received: 5 }));
  });
  const ask = fetch;
  vi.stubGlobal("document", { cookie: "holdfast_token=t" });
  vi.stubGlobal("location", { protocol: "http:", href: "http://page/" });
  vi.stubGlobal("fetch", (path: string, init?: RequestInit) => ask(server.url + path, init));
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await server.stop();
});

it("several files begin one after another, with the reader's token", async () => {
  const upload = () => uploadFile(new Blob(["xxxxx"]), "tide.txt", { signal: new AbortController().signal, begun: notBegun() });
  await Promise.all([upload(), upload(), upload()]);
  expect([most, server.requests.length]).toEqual([1, 3]);
  expect(server.requests[0]!.headers.authorization).toBe("Bearer t");
});
