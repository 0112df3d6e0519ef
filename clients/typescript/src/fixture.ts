// For tests, this file starts a real server on a free port of this machine. A test can reset its sockets.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RecordedRequest {
  method: string;
  /** The path includes the query. */
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
}

export type Handler = (request: RecordedRequest, response: ServerResponse) => void | Promise<void>;

export class TestServer {
  readonly requests: RecordedRequest[] = [];
  #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /** Each request gets the next of the handlers; the last handler serves all later requests. */
  static async start(...handlers: Handler[]): Promise<TestServer> {
    const server = createServer();
    const test = new TestServer(server);
    server.on("request", async (request, response) => {
      let body = "";
      for await (const piece of request) body += piece;
      const recorded = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
      const handler = handlers[Math.min(test.requests.length, handlers.length - 1)]!;
      test.requests.push(recorded);
      await handler(recorded, response);
    });
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    return test;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((stopped) => this.#server.close(stopped));
  }
}

/** Starts an event stream. */
export function stream(response: ServerResponse, runId = "run-1"): void {
  response.writeHead(200, { "content-type": "text/event-stream", "x-run-id": runId });
  response.write("retry: 1000\n\n");
}

/** Writes the text and resolves when the socket has taken it. */
export function write(response: ServerResponse, text: string): Promise<void> {
  return new Promise((written) => response.write(text, () => written()));
}

/** Lets the written bytes arrive, then resets the connection. */
export async function cut(response: ServerResponse): Promise<void> {
  await new Promise((arrived) => setTimeout(arrived, 20));
  response.socket?.resetAndDestroy();
}

export function refuse(response: ServerResponse, status: number, code: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/problem+json", ...headers });
  response.end(JSON.stringify({ status, code, title: code, detail: `It is ${code}.` }));
}
