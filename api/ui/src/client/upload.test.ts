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

/** A file that was deleted after so many reads. */
const unreadable = (after: number) => {
  const file = new Blob(["xxxxx"]);
  const gone = () => Promise.reject(new DOMException("It could not be found.", "NotFoundError"));
  const slice = (start?: number, end?: number) => (after-- > 0 ? file.slice(start, end) : Object.assign(file.slice(start, end), { arrayBuffer: gone }));
  return Object.assign(new Blob(["xxxxx"]), { slice });
};

it("a file that cannot be read is not told as a server that cannot be reached", async () => {
  const upload = (file: Blob) => uploadFile(file, "tide.txt", { signal: new AbortController().signal, begun: notBegun() });
  await expect(upload(unreadable(0))).rejects.toMatchObject({ code: "file_unreadable" });
  expect(server.requests).toHaveLength(0);
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
  await expect(upload(unreadable(1))).rejects.toMatchObject({ code: "file_unreadable" });
});
