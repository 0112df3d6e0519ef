// The site of a person: CopilotKit's runtime before Holdfast, and the page.
import { once } from "node:events";
import { createServer } from "node:http";
import { basename } from "node:path";

import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";
import { build } from "esbuild";
import { ResumableHttpAgent } from "holdfast-ag-ui";
import { ResumableRunner } from "holdfast-ag-ui/copilotkit";

const HTML = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/page.css"><div id="root"></div><script type="module" src="/page.js"></script>`;

const { outputFiles } = await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: ["page.jsx"],
  bundle: true,
  splitting: true,
  format: "esm",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  loader: { ".ttf": "empty", ".woff": "empty", ".woff2": "empty" },
  logLevel: "error",
  outdir: "out",
  write: false,
});
/** The files of the page by their addresses. */
const FILES = new Map(outputFiles.map(({ path, contents }) => [`/${basename(path)}`, contents]));
FILES.set("/", HTML);

export class Site {
  static async before(base) {
    const site = new Site();
    site.base = base;
    await site.start(0);
    return site;
  }

  /** Starts a runtime, which knows of no thread. */
  async start(port) {
    const agents = { default: new ResumableHttpAgent({ url: `${this.base}/ag-ui` }) };
    const runtime = new CopilotRuntime({ agents, runner: new ResumableRunner(agents) });
    const answer = createCopilotNodeListener({ runtime, basePath: "/api/copilotkit" });
    this.server = createServer((request, response) => {
      const { pathname } = new URL(request.url, "http://localhost");
      if (pathname.startsWith("/api/copilotkit")) return void answer(request, response);
      const type = pathname.endsWith(".js") ? "text/javascript" : pathname.endsWith(".css") ? "text/css" : "text/html";
      response.writeHead(FILES.has(pathname) ? 200 : 404, { "content-type": type }).end(FILES.get(pathname));
    });
    this.server.listen(port, "127.0.0.1");
    await once(this.server, "listening");
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
  }

  /** Replaces the runtime, as a deployment does. */
  async startAgain() {
    const { port } = this.server.address();
    await this.stop();
    await this.start(port);
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }
}
