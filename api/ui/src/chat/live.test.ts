import type { ServerResponse } from "node:http";

import type { UIMessageChunk } from "ai";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { TestServer, cut, refuse, stream, write, type Asked } from "../client/fixture";
import { LiveChat } from "./live";
import type { ChatMessage } from "./message";

const CHAT = "chat";
const RUN = "run-1";

let server: TestServer;
/** What the server does with a request, by its beginning such as `POST /api/chat`; the longest that fits. */
let routes: Record<string, (asked: Asked, response: ServerResponse) => void | Promise<void>>;

beforeEach(async () => {
  routes = {};
  server = await TestServer.start((asked, response) => {
    const fits = Object.keys(routes).filter((route) => `${asked.method} ${asked.path}`.startsWith(route));
    const route = fits.sort((one, other) => other.length - one.length)[0];
    return route === undefined ? refuse(response, 404, "not_found") : routes[route]!(asked, response);
  });
  const ask = fetch;
  vi.stubGlobal("fetch", (path: string, init?: RequestInit) => ask(server.url + path, init));
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await server.stop();
});

/** However busy the machine is. */
const until = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 10 });

const frame = (chunk: UIMessageChunk) => `data: ${JSON.stringify(chunk)}\n\n`;
const begin = (messageId = "new") => frame({ type: "start", messageId, messageMetadata: { runId: RUN, conversationId: "conversation" } });
const text = (delta: string) => frame({ type: "text-start", id: "t" }) + frame({ type: "text-delta", id: "t", delta });
const END = frame({ type: "text-end", id: "t" }) + frame({ type: "finish" }) + "data: [DONE]\n\n";

const question: ChatMessage = { id: "q", role: "user", parts: [{ type: "text", text: "hello" }] };
const answer: ChatMessage = {
  id: "a",
  role: "assistant",
  metadata: { runId: "run-0", conversationId: "conversation", status: "completed" },
  parts: [{ type: "text", text: "Hello to you." }],
};
const asking = { ...answer, metadata: { runId: RUN, conversationId: "conversation" }, parts: [{ type: "tool-ask_user", toolCallId: "c", state: "input-available", input: {} }] } as ChatMessage;

const json = (value: unknown) => (_: Asked, response: ServerResponse) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
};
const answers = (said: string) => (_: Asked, response: ServerResponse) => {
  stream(response, RUN);
  response.end(begin() + text(said) + END);
};
const limited = (_: Asked, response: ServerResponse) => refuse(response, 429, "rate_limited", { "retry-after": "7" });

/** A server that has these messages, and this run at work. */
const has = (messages: ChatMessage[], runId: string | null = null) => {
  routes["GET /v1/conversations/"] = json({ id: "conversation", agent_id: null, live_run_id: runId, last_message_at: null });
  routes[`GET /api/chat/conversation/messages`] = json(messages);
  routes[`GET /api/chat/${CHAT}/messages`] = json(messages);
};

function chatWith(messages: ChatMessage[] = []) {
  const chat = new LiveChat(CHAT, true);
  chat.sdk.messages = messages;
  const { state, speaking, reading, sdk } = chat;
  const shown = () => state.shown.map(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
  const asked = (route: string) => server.asked.filter(({ method, path }) => `${method} ${path}` === route);
  return { state, speaking, reading, sdk, shown, asked };
}

describe("what is refused", () => {
  it("leaves the messages as they were, and is the same when it is said again", async () => {
    const { state, speaking, shown, asked } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    expect(speaking.send("more")).toBe(true);
    expect(state.now.unsent).toEqual({ text: "more", isUnderway: true });
    await until(() => expect(state.now.problem?.retryAfter).toBe(7));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "more", isUnderway: false } });

    routes["POST /api/chat"] = answers("There.");
    expect(speaking.send("more")).toBe(true);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "There."]));
    expect(state.now).toMatchObject({ problem: undefined, unsent: undefined });
    const [first, second] = asked("POST /api/chat");
    expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"]);
    expect(JSON.parse(second!.body).message.id).toBe(JSON.parse(first!.body).message.id);
  });

  it("is forgotten for other words", async () => {
    const { state, speaking, shown, asked } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.send("more");
    await until(() => expect(state.now.failed).toBe("sending"));
    routes["POST /api/chat"] = answers("There.");
    speaking.send("other");
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "other", "There."]));
    const keys = asked("POST /api/chat").map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(2);
  });

  it("takes no answer away that was to be made again", async () => {
    const { state, speaking, shown } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.regenerate("a");
    await until(() => expect(state.now.failed).toBe("sending"));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    routes["POST /api/chat"] = answers("Again.");
    speaking.retry();
    await until(() => expect(shown()).toEqual(["hello", "Again."]));
  });

  it("supersedes nothing as an edit", async () => {
    const { state, speaking, shown } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.edit("q", "hi");
    await until(() => expect(state.now.unsent).toEqual({ text: "hi", instead: "q", isUnderway: false }));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    routes["POST /api/chat"] = answers("Hi.");
    speaking.retry();
    await until(() => expect(shown()).toEqual(["hi", "Hi."]));
  });

  it("opens a question again that it would have withdrawn", async () => {
    const { state, speaking } = chatWith([question, asking]);
    routes["POST /api/chat"] = limited;
    expect(state.progress).toBe("waiting");
    speaking.send("never mind");
    await until(() => expect(state.now.failed).toBe("sending"));
    await until(() => expect(state.progress).toBe("waiting"));
  });

  it("is still to be said when something else is read, and is not when it has arrived", async () => {
    const { state, speaking, reading } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.send("more");
    await until(() => expect(state.now.failed).toBe("sending"));
    const { id } = state.said!.written!;
    has([question, answer]);
    await reading.read();
    expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "more" } });
    has([question, answer, { id, role: "user", parts: [{ type: "text", text: "more" }] }]);
    await reading.read();
    expect(state.now).toMatchObject({ problem: undefined, failed: undefined, unsent: undefined });
  });
});

describe("a stop", () => {
  it("that comes late does not mean what was said since", async () => {
    const { state, speaking, shown, asked } = chatWith();
    let end = () => {};
    routes["POST /api/chat"] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin(`${server.asked.length}`) + text("Long"));
      end = () => response.end(END);
    };
    routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "1" });
    speaking.send("first");
    await until(() => expect(shown()).toEqual(["first", "Long"]));
    const stopping = speaking.stop();
    await until(() => expect(asked(`POST /api/chat/${CHAT}/stop`)).toHaveLength(1));
    end();
    await stopping;
    expect(state.progress).toBe("idle");
    speaking.send("second");
    await until(() => expect(shown()).toHaveLength(4));
    await new Promise((later) => setTimeout(later, 1_200));
    expect(asked(`POST /api/chat/${CHAT}/stop`)).toHaveLength(1);
    expect(state.now.isReconnecting).toBe(false);
    end();
  });

  it("before the server has the message waits until it has", async () => {
    const { state, speaking, asked } = chatWith();
    let accept = () => {};
    routes["POST /api/chat"] = (_, response) => {
      accept = () => (stream(response, RUN), response.end(begin() + END));
    };
    routes[`POST /api/chat/${CHAT}/stop`] = json({ success: true });
    speaking.send("first");
    await until(() => expect(server.asked).toHaveLength(1));
    await speaking.stop();
    expect(asked(`POST /api/chat/${CHAT}/stop`)).toHaveLength(0);
    accept();
    await until(() => expect(asked(`POST /api/chat/${CHAT}/stop`)).toHaveLength(1));
    await until(() => expect(state.progress).toBe("idle"));
  });

  it("while the network is away reaches the run that was begun all the same", async () => {
    const { state, speaking, shown, asked } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => void response.socket?.resetAndDestroy();
    speaking.send("first");
    await until(() => expect(state.now.isReconnecting).toBe(true));
    void speaking.stop();
    await until(() => expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "first", isUnderway: false } }));
    await until(() => expect(shown()).toEqual([]));
    expect(state.progress).toBe("idle");
    const stop = `POST /api/chat/${CHAT}/stop`;
    await until(() => expect(asked(stop).length).toBeGreaterThan(0));

    const { id } = state.said!.written!;
    const cancelled: ChatMessage = { ...answer, metadata: { ...answer.metadata, status: "cancelled" } };
    has([{ id, role: "user", parts: [{ type: "text", text: "first" }] }, cancelled]);
    routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => void response.writeHead(204).end();
    routes[`POST /api/chat/${CHAT}/stop`] = json({ success: true });
    await until(() => expect(shown()).toEqual(["first", "Hello to you."]));
    await until(() => expect(state.now).toMatchObject({ problem: undefined, unsent: undefined, isResuming: false }));
    await until(() => expect(asked(stop).length).toBeGreaterThan(1));
    expect(asked("POST /api/chat").length).toBeLessThan(3);
  });
});

describe("an answer that is taken up again", () => {
  it("stays as it was when that is refused", async () => {
    const { state, reading, shown } = chatWith([question, { ...answer, metadata: { runId: RUN, conversationId: "conversation" } }]);
    has([question], RUN);
    routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => refuse(response, 403, "forbidden");
    await reading.read();
    await until(() => expect(state.now.held).toBeUndefined());
    expect(shown()).toEqual(["hello", "Hello to you."]);
    expect(state.now).toMatchObject({ failed: "reading", isResuming: false });
  });

  it("stays as it was when its beginning was told anew and no more", async () => {
    const { state, reading, sdk, shown } = chatWith([question, { ...answer, metadata: { runId: RUN, conversationId: "conversation" } }]);
    has([question], RUN);
    let count = 0;
    routes[`GET /api/chat/${CHAT}/stream`] = async (_, response) => {
      if ((count += 1) > 1) return refuse(response, 403, "forbidden");
      stream(response, RUN);
      await write(response, begin());
      // A slow network pauses here, and that is not the end of what is told.
      await until(() => expect(sdk.lastMessage?.id).toBe("new"));
      await cut(response);
    };
    await reading.read();
    await until(() => expect(state.now.failed).toBe("reading"));
    await until(() => expect(state.now.held).toBeUndefined());
    expect(shown()).toEqual(["hello", "Hello to you."]);
  });

  it("lets one say something else to a run that waits", async () => {
    const { state, reading, speaking, shown } = chatWith([question, asking]);
    has([question], RUN);
    // It never comes.
    routes[`GET /api/chat/${CHAT}/stream`] = () => {};
    void reading.read();
    await until(() => expect(state.now.isResuming).toBe(true));
    expect(state.progress).toBe("waiting");
    routes["POST /api/chat"] = answers("All right.");
    expect(speaking.send("never mind")).toBe(true);
    await until(() => expect(shown()).toEqual(["hello", "", "never mind", "All right."]));
    expect(state.now.isResuming).toBe(false);
  });

  it("lets nobody interrupt it by a message that would get lost", async () => {
    const { state, reading, speaking } = chatWith([question, { ...answer, metadata: { runId: RUN } }]);
    has([question], RUN);
    routes[`GET /api/chat/${CHAT}/stream`] = () => {};
    void reading.read();
    await until(() => expect(state.now.isResuming).toBe(true));
    expect(speaking.send("more")).toBe(false);
    expect(state.now.unsent).toBeUndefined();
  });
});

it("a chat is with whom it has begun, and may change its mind as long as nothing was taken", async () => {
  const { state, speaking, asked } = chatWith();
  state.wantedAgentId = "gone";
  routes["POST /api/chat"] = (_, response) => refuse(response, 400, "agent_not_found");
  speaking.send("first");
  await until(() => expect(state.now.failed).toBe("sending"));
  await until(() => expect(state.sdk.messages).toEqual([]));
  state.wantedAgentId = "there";
  routes["POST /api/chat"] = answers("Yes.");
  speaking.send("first");
  await until(() => expect(state.sdk.messages).toHaveLength(2));
  state.wantedAgentId = undefined;
  await until(() => expect(state.progress).toBe("idle"));
  speaking.send("second");
  await until(() => expect(asked("POST /api/chat")).toHaveLength(3));
  expect(asked("POST /api/chat").map(({ body }) => JSON.parse(body).agentId)).toEqual(["gone", "there", "there"]);
});
