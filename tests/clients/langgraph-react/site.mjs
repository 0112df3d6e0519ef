// The site of a person: the page, and the server's routes below `/langgraph`, whose connections a scenario may cut.
import { once } from "node:events";
import { createServer, request as send } from "node:http";

import { build } from "esbuild";

const HTML = `<!doctype html><meta charset="utf-8"><div id="root"></div><script type="module" src="/page.js"></script>`;

const { outputFiles } = await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ["page.jsx"],
  bundle: true,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "error",
  outdir: "out",
  write: false,
});
const PAGE = outputFiles[0].contents;

export class Site {
  /** The requests below `/langgraph`, each with the answer's status, and with its command if it is one. */
  requests = [];
  streams = new Set();

  static async before(base) {
    const site = new Site();
    site.base = new URL(base);
    site.server = createServer((request, response) => site.answer(request, response));
    site.server.listen(0, "127.0.0.1");
    await once(site.server, "listening");
    site.origin = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  answer(request, response) {
    if (!request.url.startsWith("/langgraph/")) {
      const isPage = request.url.startsWith("/page.js");
      response.writeHead(200, { "content-type": isPage ? "text/javascript" : "text/html" }).end(isPage ? PAGE : HTML);
      return;
    }
    const { method, url, headers } = request;
    const record = { method, url };
    this.requests.push(record);
    const upstream = send({ host: this.base.hostname, port: this.base.port, method, path: url, headers }, (answer) => {
      record.status = answer.statusCode;
      response.writeHead(answer.statusCode, answer.headers);
      if (answer.headers["content-type"] === "text/event-stream") this.streams.add(response);
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    upstream.on("error", () => response.destroy());
    response.on("close", () => {
      this.streams.delete(response);
      upstream.destroy();
    });
    const body = [];
    request.on("data", (piece) => {
      body.push(piece);
      upstream.write(piece);
    });
    request.on("end", () => {
      const text = Buffer.concat(body).toString();
      if (url.endsWith("/commands")) record.command = JSON.parse(text).method;
      upstream.end();
    });
  }

  /** Cuts all streams, as a broken network does. */
  cut() {
    const count = this.streams.size;
    for (const stream of this.streams) stream.destroy();
    return count;
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}
