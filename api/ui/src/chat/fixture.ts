// For tests, this file makes a chat on a real server, which responds as each test says.
import type { ServerResponse } from "node:http";

import type { UIMessageChunk } from "ai";
import { TestServer, refuse, stream, type RecordedRequest } from "holdfast-client/fixture";
import { afterEach, beforeEach, vi } from "vitest";

import { LiveChat } from "./live";
import type { ChatMessage } from "./message";
import { progressOf, shownOf, unsentOf } from "./state";

export const CHAT = "chat";
export const RUN = "run-1";

export let server: TestServer;
/** Maps a request's beginning, such as `POST /api/chat`, to its handler; the server takes the longest match. */
export let routes: Record<string, (request: RecordedRequest, response: ServerResponse) => void | Promise<void>>;

beforeEach(async () => {
  routes = { "GET /v1/conversations/conversation/messages": json({ items: [], next: null }) };
  server = await TestServer.start((request, response) => {
    const fits = Object.keys(routes).filter((route) => `${request.method} ${request.path}`.startsWith(route));
    const route = fits.sort((one, other) => other.length - one.length)[0];
    return route === undefined ? refuse(response, 404, "not_found") : routes[route]!(request, response);
  });
  const ask = fetch;
  vi.stubGlobal("location", { protocol: "http:", href: "http://page/" });
  vi.stubGlobal("fetch", (path: string, init?: RequestInit) => ask(server.url + path, init));
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await server.stop();
});

/** The time-out also suits a busy machine. */
export const until = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 10 });

let events = 0;
export const frame = (chunk: UIMessageChunk) => `id: 1-${(events += 1)}\ndata: ${JSON.stringify(chunk)}\n\n`;
export const begin = (messageId = "new", runId = RUN) => frame({ type: "start", messageId, messageMetadata: { runId, conversationId: "conversation" } });
export const text = (delta: string) => frame({ type: "text-start", id: "t" }) + frame({ type: "text-delta", id: "t", delta });
export const END = frame({ type: "text-end", id: "t" }) + frame({ type: "finish" }) + "data: [DONE]\n\n";

export const question: ChatMessage = { id: "q", role: "user", parts: [{ type: "text", text: "hello" }] };
export const answer: ChatMessage = {
  id: "a",
  role: "assistant",
  metadata: { runId: "run-0", conversationId: "conversation", status: "completed" },
  parts: [{ type: "text", text: "Hello to you." }],
};
/** The run asks the page in `asking`, and asks for permission in `requesting`. */
export const asking = { ...answer, metadata: { runId: RUN, conversationId: "conversation" }, parts: [{ type: "tool-ask_user", toolCallId: "c", state: "input-available", input: {} }] } as ChatMessage;
export const requesting = { ...asking, parts: [{ type: "dynamic-tool", toolName: "x", toolCallId: "c", state: "approval-requested", input: {}, approval: { id: "p" } }] } as ChatMessage;

export const json = (value: unknown) => (_: unknown, response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
};
export const answers = (reply: string) => (_: unknown, response: ServerResponse) => {
  stream(response, RUN);
  response.end(begin() + text(reply) + END);
};
export const limited = (_: unknown, response: ServerResponse) => refuse(response, 429, "rate_limited", { "retry-after": "7" });

/** Makes the server return these messages, and name this run as live. */
export const has = (messages: ChatMessage[], runId: string | null = null) => {
  routes["GET /v1/conversations/"] = json({ id: "conversation", agent_id: null, live_run_id: runId, last_message_at: null });
  routes[`GET /api/chat/conversation/messages`] = json(messages);
  routes[`GET /api/chat/${CHAT}/messages`] = json(messages);
};

export function chatWith(messages: ChatMessage[] = []) {
  const chat = new LiveChat(CHAT, true);
  const { sdk } = chat;
  sdk.messages = messages;
  /** The chat as a view has it. */
  const view = {
    get now() {
      const { failure, phase, ...rest } = chat.now;
      return { ...rest, phase, problem: failure?.problem, failed: failure?.failed, unsent: unsentOf(chat.now) };
    },
    get progress() {
      return progressOf(chat.now, sdk);
    },
    get messages() {
      return shownOf(chat.now, sdk);
    },
  };
  const read = () => chat.dispatch({ type: "read" });
  const stop = () => chat.dispatch({ type: "stopped" });
  /** The page follows the run, because the reader has answered its question. */
  const follow = () => chat.dispatch({ type: "answered", runId: RUN, answer: { approvalId: "p", verdict: { approved: true } } });
  const shown = () => view.messages.map(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  // A route without a query has the requests with any query.
  const requests = (route: string) =>
    server.requests.filter(({ method, path }) => [path, path.split("?")[0]].some((asked) => `${method} ${asked}` === route));
  return { chat, view, sdk, read, stop, follow, shown, requests };
}

/** Opens a chat as a page does; returns a function that leaves it. */
export function open(chat: LiveChat): () => void {
  vi.stubGlobal("document", Object.assign(new EventTarget(), { visibilityState: "visible", cookie: "" }));
  return chat.open();
}
