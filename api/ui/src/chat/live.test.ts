import { once } from "node:events";
import type { ServerResponse } from "node:http";

import { describe, expect, it } from "vitest";

import { cut, refuse, stream, write } from "../client/fixture";
import { CHAT, END, RUN, answer, answers, asking, begin, chatWith, has, json, limited, open, question, routes, server, text, until } from "./fixture";
import { LiveChat, giveUpUnsent, unsentNewChat } from "./live";
import type { ChatMessage } from "./message";

describe("a refused message", () => {
  it("leaves the messages unchanged, and keeps its id and key when the reader repeats it", async () => {
    const { state, speaking, shown, requests } = chatWith([question, answer]);
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
    const [first, second] = requests("POST /api/chat");
    expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"]);
    expect(JSON.parse(second!.body).message.id).toBe(JSON.parse(first!.body).message.id);
  });

  it("loses its id and key when the reader sends another text", async () => {
    const { state, speaking, shown, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.send("more");
    await until(() => expect(state.now.failed).toBe("sending"));
    routes["POST /api/chat"] = answers("There.");
    speaking.send("other");
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "other", "There."]));
    const keys = requests("POST /api/chat").map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(2);
  });

  it("takes no answer away that the reader wanted again", async () => {
    const { state, speaking, shown } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.regenerate("a");
    // It is no message, and does not mention an earlier refused one.
    expect(state.now.unsent).toEqual({ isUnderway: true });
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

  it("stays unsent after a read, unless the history has it", async () => {
    const { state, speaking, reading } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    speaking.send("more");
    await until(() => expect(state.now.failed).toBe("sending"));
    const { id } = state.utterance!.written!;
    has([question, answer]);
    await reading.read();
    expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "more" } });
    has([question, answer, { id, role: "user", parts: [{ type: "text", text: "more" }] }]);
    await reading.read();
    expect(state.now).toMatchObject({ problem: undefined, failed: undefined, unsent: undefined });
  });
});

describe("a message that the server cannot take yet", () => {
  it("stays among the messages, and arrives once when the server is back", async () => {
    const { state, speaking, shown, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "0" });
    speaking.send("more");
    await until(() => expect(requests("POST /api/chat").length).toBeGreaterThan(1));
    expect(shown()).toEqual(["hello", "Hello to you.", "more"]);
    expect(state.now).toMatchObject({ isReconnecting: true, problem: undefined, unsent: { text: "more", isUnderway: true } });
    routes["POST /api/chat"] = answers("There.");
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "There."]));
    expect(new Set(requests("POST /api/chat").map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  it("keeps its chat when the reader leaves and returns", async () => {
    const { chat, state, speaking, shown } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    const leave = open(chat);
    speaking.send("first");
    await until(() => expect(state.now.isReconnecting).toBe(true));
    // A reader that wants a new chat gets this one, too, while it is open.
    expect(unsentNewChat()).toBe(CHAT);
    leave();
    expect(unsentNewChat()).toBe(CHAT);
    const again = LiveChat.of(CHAT, true);
    expect(again).toBe(chat);
    open(again);
    routes["POST /api/chat"] = answers("There.");
    await until(() => expect(shown()).toEqual(["first", "There."]));
    expect(unsentNewChat()).toBeUndefined();
    await until(() => expect(state.progress).toBe("idle"));
    expect(LiveChat.of(CHAT, true)).not.toBe(chat);
  });

  it("leaves with its reader when another one signs in", async () => {
    const { chat, state, speaking, requests } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    const leave = open(chat);
    speaking.send("first");
    await until(() => expect(state.now.isReconnecting).toBe(true));
    leave();
    giveUpUnsent();
    expect(LiveChat.of(CHAT, true)).not.toBe(chat);
    const tries = requests("POST /api/chat").length;
    await new Promise((later) => setTimeout(later, 1_200));
    expect(requests("POST /api/chat").length).toBe(tries);
  });
});

describe("a message that the server refused for its length", () => {
  it("is forgotten when its writer has changed it", async () => {
    const { state, speaking, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = (_, response) => refuse(response, 400, "content_too_long");
    speaking.send("more");
    await until(() => expect(state.now.failed).toBe("sending"));
    speaking.dismiss();
    expect(state.now).toMatchObject({ problem: undefined, failed: undefined, unsent: undefined });
    speaking.send("more");
    await until(() => expect(requests("POST /api/chat")).toHaveLength(2));
  });
});

describe("a run that fails before its first chunk", () => {
  it("keeps its question among the messages", async () => {
    const { state, speaking, shown } = chatWith();
    routes["POST /api/chat"] = (request, response) => {
      const { message } = JSON.parse(request.body);
      has([message, { ...answer, parts: [], metadata: { runId: RUN, status: "failed", error: { code: "model_failed", message: "" } } }]);
      routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => void response.writeHead(204).end();
      response.writeHead(500, { "content-type": "application/problem+json" });
      response.end(JSON.stringify({ status: 500, code: "model_failed", detail: "It failed.", run: "/v1/runs/1" }));
    };
    speaking.send("first");
    await until(() => expect(state.now).toMatchObject({ failed: "run", problem: { code: "model_failed" }, unsent: undefined }));
    expect(shown()).toEqual(["first", ""]);
  });
});

describe("an edit of a message", () => {
  it("becomes a new message when the history no longer has the old one", async () => {
    const later = [{ ...question, id: "q2" }, { ...answer, id: "a2" }];
    const { state, speaking, reading, shown } = chatWith([question, answer, ...later]);
    routes["POST /api/chat"] = limited;
    speaking.edit("q2", "hi");
    await until(() => expect(shown()).toHaveLength(4));
    await until(() => expect(state.now.unsent).toEqual({ text: "hi", instead: "q2", isUnderway: false }));
    has([{ ...question, id: "q1" }, answer]);
    await reading.read();
    expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "hi", instead: undefined, isUnderway: false } });
    routes["POST /api/chat"] = answers("Hi.");
    speaking.retry();
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "hi", "Hi."]));
  });
});

describe("a chat that the reader leaves", () => {
  it("lets the message in flight arrive", async () => {
    const { chat, state, speaking } = chatWith();
    let accepted: ServerResponse | undefined;
    routes["POST /api/chat"] = (_, response) => void (accepted = response);
    const leave = open(chat);
    speaking.send("first");
    await until(() => expect(accepted).toBeDefined());
    const hungUp = once(accepted!, "close");
    leave();
    const settled = state.settled();
    stream(accepted!, RUN);
    expect(await settled).toBeUndefined();
    await hungUp;
  });

  it("knows the message that has not arrived", async () => {
    const { chat, state, speaking } = chatWith();
    let refused: ServerResponse | undefined;
    routes["POST /api/chat"] = (_, response) => void (refused = response);
    const leave = open(chat);
    speaking.send("first");
    await until(() => expect(refused).toBeDefined());
    leave();
    const settled = state.settled();
    limited(undefined, refused!);
    expect(await settled).toEqual({ text: "first", isUnderway: false });
  });
});

describe("a stop", () => {
  it("that arrives late does not cancel a newer message's run", async () => {
    const { state, speaking, shown, requests } = chatWith();
    let end = () => {};
    routes["POST /api/chat"] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin(`${server.requests.length}`) + text("Long"));
      end = () => response.end(END);
    };
    routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "1" });
    speaking.send("first");
    await until(() => expect(shown()).toEqual(["first", "Long"]));
    const stopping = speaking.stop();
    await until(() => expect(requests(`POST /api/chat/${CHAT}/stop`)).toHaveLength(1));
    end();
    await stopping;
    expect(state.progress).toBe("idle");
    speaking.send("second");
    await until(() => expect(shown()).toHaveLength(4));
    await new Promise((later) => setTimeout(later, 1_200));
    expect(requests(`POST /api/chat/${CHAT}/stop`)).toHaveLength(1);
    expect(state.now.isReconnecting).toBe(false);
    end();
  });

  it("waits until the server has the message", async () => {
    const { state, speaking, requests } = chatWith();
    let accept = () => {};
    routes["POST /api/chat"] = (_, response) => {
      accept = () => (stream(response, RUN), response.end(begin() + END));
    };
    routes[`POST /api/chat/${CHAT}/stop`] = json({ success: true });
    speaking.send("first");
    await until(() => expect(server.requests).toHaveLength(1));
    await speaking.stop();
    expect(requests(`POST /api/chat/${CHAT}/stop`)).toHaveLength(0);
    accept();
    await until(() => expect(requests(`POST /api/chat/${CHAT}/stop`)).toHaveLength(1));
    await until(() => expect(state.progress).toBe("idle"));
  });

  it("also takes effect when the network fails after it", async () => {
    const { state, speaking, requests } = chatWith();
    let lost: ServerResponse | undefined;
    routes["POST /api/chat"] = (_, response) => void (lost = response);
    speaking.send("first");
    await until(() => expect(lost).toBeDefined());
    await speaking.stop();
    expect(state.progress).toBe("submitted");
    routes["GET /api/chat/"] = (_, response) => void response.socket?.resetAndDestroy();
    lost!.socket?.resetAndDestroy();
    await until(() => expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "first", isUnderway: false } }));
    await until(() => expect(state.progress).toBe("idle"));
    expect(requests("POST /api/chat")).toHaveLength(1);
  });

  it("during a network failure reaches the run that started nevertheless", async () => {
    const { state, speaking, shown, requests } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => void response.socket?.resetAndDestroy();
    speaking.send("first");
    await until(() => expect(state.now.isReconnecting).toBe(true));
    void speaking.stop();
    await until(() => expect(state.now).toMatchObject({ failed: "sending", unsent: { text: "first", isUnderway: false } }));
    await until(() => expect(shown()).toEqual([]));
    expect(state.progress).toBe("idle");
    const stop = `POST /api/chat/${CHAT}/stop`;
    await until(() => expect(requests(stop).length).toBeGreaterThan(0));

    const { id } = state.utterance!.written!;
    const cancelled: ChatMessage = { ...answer, metadata: { ...answer.metadata, status: "cancelled" } };
    has([{ id, role: "user", parts: [{ type: "text", text: "first" }] }, cancelled]);
    routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => void response.writeHead(204).end();
    routes[`POST /api/chat/${CHAT}/stop`] = json({ success: true });
    await until(() => expect(shown()).toEqual(["first", "Hello to you."]));
    await until(() => expect(state.now).toMatchObject({ problem: undefined, unsent: undefined, isResuming: false }));
    await until(() => expect(requests(stop).length).toBeGreaterThan(1));
    expect(requests("POST /api/chat").length).toBeLessThan(3);
  });
});

describe("a resumed answer", () => {
  it("stays unchanged when the server refuses to resume it", async () => {
    const { state, reading, shown } = chatWith([question, { ...answer, metadata: { runId: RUN, conversationId: "conversation" } }]);
    has([question], RUN);
    routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => refuse(response, 403, "forbidden");
    await reading.read();
    await until(() => expect(state.now.held).toBeUndefined());
    expect(shown()).toEqual(["hello", "Hello to you."]);
    expect(state.now).toMatchObject({ failed: "reading", isResuming: false });
  });

  it("stays unchanged when the server repeats only its beginning", async () => {
    const { state, reading, sdk, shown } = chatWith([question, { ...answer, metadata: { runId: RUN, conversationId: "conversation" } }]);
    has([question], RUN);
    let count = 0;
    routes[`GET /api/chat/${CHAT}/stream`] = async (_, response) => {
      if ((count += 1) > 1) return refuse(response, 403, "forbidden");
      stream(response, RUN);
      await write(response, begin());
      // A slow network pauses here, before the replay ends.
      await until(() => expect(sdk.lastMessage?.id).toBe("new"));
      await cut(response);
    };
    await reading.read();
    await until(() => expect(state.now.failed).toBe("reading"));
    await until(() => expect(state.now.held).toBeUndefined());
    expect(shown()).toEqual(["hello", "Hello to you."]);
  });

  it("allows another message to a run that waits", async () => {
    const { state, reading, speaking, shown } = chatWith([question, asking]);
    has([question], RUN);
    // The response never arrives.
    routes[`GET /api/chat/${CHAT}/stream`] = () => {};
    void reading.read();
    await until(() => expect(state.now.isResuming).toBe(true));
    expect(state.progress).toBe("waiting");
    routes["POST /api/chat"] = answers("All right.");
    expect(speaking.send("never mind")).toBe(true);
    await until(() => expect(shown()).toEqual(["hello", "", "never mind", "All right."]));
    expect(state.now.isResuming).toBe(false);
  });

  it("refuses a message that would get lost", async () => {
    const { state, reading, speaking } = chatWith([question, { ...answer, metadata: { runId: RUN } }]);
    has([question], RUN);
    routes[`GET /api/chat/${CHAT}/stream`] = () => {};
    void reading.read();
    await until(() => expect(state.now.isResuming).toBe(true));
    expect(speaking.send("more")).toBe(false);
    expect(state.now.unsent).toBeUndefined();
  });
});

it("a chat keeps its agent, but may change it until the server has taken a message", async () => {
  const { state, speaking, requests } = chatWith();
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
  await until(() => expect(requests("POST /api/chat")).toHaveLength(3));
  expect(requests("POST /api/chat").map(({ body }) => JSON.parse(body).agentId)).toEqual(["gone", "there", "there"]);
});
