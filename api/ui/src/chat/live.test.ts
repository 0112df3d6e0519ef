import { once } from "node:events";
import type { ServerResponse } from "node:http";

import { cut, refuse, stream, write } from "holdfast-client/fixture";
import { describe, expect, it } from "vitest";

import { CHAT, END, RUN, answer, answers, asking, begin, chatWith, has, json, limited, open, question, routes, server, text, until } from "./fixture";
import { LiveChat, giveUpUnsent, unsentNewChat } from "./live";
import type { ChatMessage } from "./message";

describe("a refused message", () => {
  it("leaves the messages unchanged, and keeps its id and key when the reader repeats it", async () => {
    const { chat, view, shown, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    expect(chat.send("more")).toBe(true);
    expect(view.now.unsent).toEqual({ text: "more", isUnderway: true });
    await until(() => expect(view.now.problem?.retryAfter).toBe(7));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    expect(view.now).toMatchObject({ failed: "sending", unsent: { text: "more", isUnderway: false } });

    routes["POST /api/chat"] = answers("There.");
    expect(chat.send("more")).toBe(true);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "There."]));
    expect(view.now).toMatchObject({ problem: undefined, unsent: undefined });
    const [first, second] = requests("POST /api/chat");
    expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"]);
    expect(JSON.parse(second!.body).message.id).toBe(JSON.parse(first!.body).message.id);
  });

  it("loses its id and key when the reader sends another text", async () => {
    const { chat, view, shown, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    chat.send("more");
    await until(() => expect(view.now.failed).toBe("sending"));
    routes["POST /api/chat"] = answers("There.");
    chat.send("other");
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "other", "There."]));
    const keys = requests("POST /api/chat").map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(2);
  });

  it("takes no answer away that the reader wanted again", async () => {
    const { chat, view, shown } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    chat.regenerate("a");
    // It is no message, and does not mention an earlier refused one.
    expect(view.now.unsent).toEqual({ isUnderway: true });
    await until(() => expect(view.now.failed).toBe("sending"));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    routes["POST /api/chat"] = answers("Again.");
    chat.retry();
    await until(() => expect(shown()).toEqual(["hello", "Again."]));
  });

  it("supersedes nothing as an edit", async () => {
    const { chat, view, shown } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    chat.edit("q", "hi");
    await until(() => expect(view.now.unsent).toEqual({ text: "hi", instead: "q", isUnderway: false }));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    routes["POST /api/chat"] = answers("Hi.");
    chat.retry();
    await until(() => expect(shown()).toEqual(["hi", "Hi."]));
  });

  it("opens a question again that it would have withdrawn", async () => {
    const { chat, view } = chatWith([question, asking]);
    routes["POST /api/chat"] = limited;
    expect(view.progress).toBe("waiting");
    chat.send("never mind");
    await until(() => expect(view.now.failed).toBe("sending"));
    await until(() => expect(view.progress).toBe("waiting"));
  });

  it("stays unsent after a read, unless the history has it", async () => {
    const { chat, view, read } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    chat.send("more");
    await until(() => expect(view.now.failed).toBe("sending"));
    const { id } = chat.now.unsent as { id: string };
    has([question, answer]);
    await read();
    expect(view.now).toMatchObject({ failed: "sending", unsent: { text: "more" } });
    has([question, answer, { id, role: "user", parts: [{ type: "text", text: "more" }] }]);
    await read();
    expect(view.now).toMatchObject({ problem: undefined, failed: undefined, unsent: undefined });
  });
});

describe("a message that the server cannot take yet", () => {
  it("stays among the messages, and arrives once when the server is back", async () => {
    const { chat, view, shown, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "0" });
    chat.send("more");
    await until(() => expect(requests("POST /api/chat").length).toBeGreaterThan(1));
    expect(shown()).toEqual(["hello", "Hello to you.", "more"]);
    expect(view.now).toMatchObject({ isReconnecting: true, problem: undefined, unsent: { text: "more", isUnderway: true } });
    routes["POST /api/chat"] = answers("There.");
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "There."]));
    expect(new Set(requests("POST /api/chat").map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  it("keeps its chat when the reader leaves and returns", async () => {
    const { chat, view, shown } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    const leave = open(chat);
    chat.send("first");
    await until(() => expect(view.now.isReconnecting).toBe(true));
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
    await until(() => expect(view.progress).toBe("idle"));
    expect(LiveChat.of(CHAT, true)).not.toBe(chat);
  });

  it("leaves with its reader when another one signs in", async () => {
    const { chat, view, requests } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    const leave = open(chat);
    chat.send("first");
    await until(() => expect(view.now.isReconnecting).toBe(true));
    leave();
    giveUpUnsent();
    expect(LiveChat.of(CHAT, true)).not.toBe(chat);
    const tries = requests("POST /api/chat").length;
    await new Promise((later) => setTimeout(later, 1_200));
    // A refusal would give the text back to the field, and another reader could see it there.
    expect(view.now.unsent).toEqual({ text: "first", isUnderway: true });
    expect(requests("POST /api/chat").length).toBe(tries);
  });
});

describe("a message beside an answer", () => {
  const MESSAGES = "/v1/conversations/conversation/messages";

  it("arrives once, although its first response is lost", async () => {
    const { chat, requests } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = (_, response) => void response.socket?.resetAndDestroy();
    const posted = chat.post("more", "enqueue");
    await until(() => expect(chat.now.posting).toMatchObject([{ text: "more", state: "held" }]));
    routes[`POST ${MESSAGES}`] = json({ message: { id: "s" }, run: { id: "run-2" } });
    has([question, answer], RUN);
    await posted;
    expect(chat.now.posting).toEqual([]);
    expect(new Set(requests(`POST ${MESSAGES}`).map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  it("keeps its key when its writer posts it again, and its chat settles without it", async () => {
    const { chat, requests } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = limited;
    const settled = (chat.post("more", "steer"), chat.settled());
    expect(await settled).toEqual([{ text: "more", isUnderway: false }]);
    const [refused] = chat.now.posting;
    await chat.takeBack(refused!);
    expect(chat.now.posting).toEqual([]);
    await chat.post("more", "steer");
    await chat.post("other", "steer");
    const [first, second, third] = requests(`POST ${MESSAGES}`).map(({ headers }) => headers["idempotency-key"]);
    expect([second === first, third === first]).toEqual([true, false]);
  });
});

describe("a message that the server refused for its length", () => {
  it("is forgotten when its writer has changed it", async () => {
    const { chat, view, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = (_, response) => refuse(response, 400, "content_too_long");
    chat.send("more");
    await until(() => expect(view.now.failed).toBe("sending"));
    void chat.dispatch({ type: "dismissed" });
    expect(view.now).toMatchObject({ problem: undefined, failed: undefined, unsent: undefined });
    chat.send("more");
    await until(() => expect(requests("POST /api/chat")).toHaveLength(2));
  });
});

describe("a run that fails before its first chunk", () => {
  it("keeps its question among the messages", async () => {
    const { chat, view, shown } = chatWith();
    routes["POST /api/chat"] = (request, response) => {
      const { message } = JSON.parse(request.body);
      has([message, { ...answer, parts: [], metadata: { runId: RUN, status: "failed", error: { code: "model_failed", message: "" } } }]);
      routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => void response.writeHead(204).end();
      response.writeHead(500, { "content-type": "application/problem+json" });
      response.end(JSON.stringify({ status: 500, code: "model_failed", detail: "It failed.", run: "/v1/runs/1" }));
    };
    chat.send("first");
    await until(() => expect(view.now).toMatchObject({ failed: "run", problem: { code: "model_failed" }, unsent: undefined }));
    expect(shown()).toEqual(["first", ""]);
  });
});

describe("an edit of a message", () => {
  it("becomes a new message when the history no longer has the old one", async () => {
    const later = [{ ...question, id: "q2" }, { ...answer, id: "a2" }];
    const { chat, view, read, shown } = chatWith([question, answer, ...later]);
    routes["POST /api/chat"] = limited;
    chat.edit("q2", "hi");
    await until(() => expect(shown()).toHaveLength(4));
    await until(() => expect(view.now.unsent).toEqual({ text: "hi", instead: "q2", isUnderway: false }));
    has([{ ...question, id: "q1" }, answer]);
    await read();
    expect(view.now).toMatchObject({ failed: "sending", unsent: { text: "hi", instead: undefined, isUnderway: false } });
    routes["POST /api/chat"] = answers("Hi.");
    chat.retry();
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "hi", "Hi."]));
  });
});

describe("a chat that the reader leaves", () => {
  it("lets the message in flight arrive", async () => {
    const { chat } = chatWith();
    let accepted: ServerResponse | undefined;
    routes["POST /api/chat"] = (_, response) => void (accepted = response);
    const leave = open(chat);
    chat.send("first");
    await until(() => expect(accepted).toBeDefined());
    const hungUp = once(accepted!, "close");
    leave();
    const settled = chat.settled();
    stream(accepted!, RUN);
    expect(await settled).toEqual([]);
    await hungUp;
  });

  it("knows the message that has not arrived", async () => {
    const { chat } = chatWith();
    let refused: ServerResponse | undefined;
    routes["POST /api/chat"] = (_, response) => void (refused = response);
    const leave = open(chat);
    chat.send("first");
    await until(() => expect(refused).toBeDefined());
    leave();
    const settled = chat.settled();
    limited(undefined, refused!);
    expect(await settled).toEqual([{ text: "first", isUnderway: false }]);
    // A view that has not shown the refusal yet.
    expect(await chat.settled(true)).toEqual([{ text: "first", isUnderway: false }]);
    expect(await chat.settled()).toEqual([]);
  });
});

/** A stop names the run that it ends. */
const STOP = `POST /api/chat/${CHAT}/stop?runId=${RUN}`;

describe("a stop", () => {
  it("that arrives late does not cancel a newer message's run", async () => {
    const { chat, view, stop, shown, requests } = chatWith();
    let end = () => {};
    routes["POST /api/chat"] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin(`${server.requests.length}`) + text("Long"));
      end = () => response.end(END);
    };
    routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "1" });
    chat.send("first");
    await until(() => expect(shown()).toEqual(["first", "Long"]));
    const stopping = stop();
    await until(() => expect(requests(STOP)).toHaveLength(1));
    end();
    await stopping;
    expect(view.progress).toBe("idle");
    chat.send("second");
    await until(() => expect(shown()).toHaveLength(4));
    await new Promise((later) => setTimeout(later, 1_200));
    expect(requests(STOP)).toHaveLength(1);
    expect(view.now.isReconnecting).toBe(false);
    end();
  });

  it("waits until the server has the message", async () => {
    const { chat, view, stop, requests } = chatWith();
    let accept = () => {};
    routes["POST /api/chat"] = (_, response) => {
      accept = () => (stream(response, RUN), response.end(begin() + END));
    };
    routes[`POST /api/chat/${CHAT}/stop`] = json({ success: true });
    chat.send("first");
    await until(() => expect(server.requests).toHaveLength(1));
    await stop();
    expect(requests(STOP)).toHaveLength(0);
    accept();
    await until(() => expect(requests(STOP)).toHaveLength(1));
    await until(() => expect(view.progress).toBe("idle"));
  });

  it("also takes effect when the network fails after it", async () => {
    const { chat, view, stop, requests } = chatWith();
    let lost: ServerResponse | undefined;
    routes["POST /api/chat"] = (_, response) => void (lost = response);
    chat.send("first");
    await until(() => expect(lost).toBeDefined());
    await stop();
    expect(view.progress).toBe("submitted");
    routes["GET /api/chat/"] = (_, response) => void response.socket?.resetAndDestroy();
    lost!.socket?.resetAndDestroy();
    await until(() => expect(view.now).toMatchObject({ failed: "sending", unsent: { text: "first", isUnderway: false } }));
    await until(() => expect(view.progress).toBe("idle"));
    expect(requests("POST /api/chat")).toHaveLength(1);
  });

  it("during a network failure reaches the run that started nevertheless", async () => {
    const { chat, view, stop, shown, requests } = chatWith();
    routes["POST /api/chat"] = (_, response) => void response.socket?.resetAndDestroy();
    routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => void response.socket?.resetAndDestroy();
    chat.send("first");
    await until(() => expect(view.now.isReconnecting).toBe(true));
    void stop();
    await until(() => expect(view.now).toMatchObject({ failed: "sending", unsent: { text: "first", isUnderway: false } }));
    await until(() => expect(shown()).toEqual([]));
    expect(view.progress).toBe("idle");
    const cancellation = `POST /api/chat/${CHAT}/stop?messageId=${(chat.now.unsent as { id: string }).id}`;
    await until(() => expect(requests(cancellation).length).toBeGreaterThan(0));

    const { id } = chat.now.unsent as { id: string };
    const cancelled: ChatMessage = { ...answer, metadata: { ...answer.metadata, status: "cancelled" } };
    has([{ id, role: "user", parts: [{ type: "text", text: "first" }] }, cancelled]);
    routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => void response.writeHead(204).end();
    routes[`POST /api/chat/${CHAT}/stop`] = json({ success: true });
    await until(() => expect(shown()).toEqual(["first", "Hello to you."]));
    await until(() => expect(view.now).toMatchObject({ problem: undefined, unsent: undefined, phase: "idle" }));
    await until(() => expect(requests(cancellation).length).toBeGreaterThan(1));
    expect(requests("POST /api/chat").length).toBeLessThan(3);
  });
});

describe("a resumed answer", () => {
  it("stays unchanged when the server refuses to resume it", async () => {
    const { view, read, shown } = chatWith([question, { ...answer, metadata: { runId: RUN, conversationId: "conversation" } }]);
    has([question], RUN);
    routes[`GET /api/chat/${CHAT}/stream`] = (_, response) => refuse(response, 403, "forbidden");
    await read();
    await until(() => expect(view.now.held).toBeUndefined());
    expect(shown()).toEqual(["hello", "Hello to you."]);
    expect(view.now).toMatchObject({ failed: "reading", phase: "idle" });
  });

  it("stays unchanged when the server repeats only its beginning", async () => {
    const { view, sdk, read, shown } = chatWith([question, { ...answer, metadata: { runId: RUN, conversationId: "conversation" } }]);
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
    await read();
    await until(() => expect(view.now.failed).toBe("reading"));
    await until(() => expect(view.now.held).toBeUndefined());
    expect(shown()).toEqual(["hello", "Hello to you."]);
  });

  it("allows another message to a run that waits", async () => {
    const { chat, view, read, shown } = chatWith([question, asking]);
    has([question], RUN);
    // The response never arrives.
    routes[`GET /api/chat/${CHAT}/stream`] = () => {};
    void read();
    await until(() => expect(view.now.phase).toBe("resuming"));
    expect(view.progress).toBe("waiting");
    routes["POST /api/chat"] = answers("All right.");
    expect(chat.send("never mind")).toBe(true);
    await until(() => expect(shown()).toEqual(["hello", "", "never mind", "All right."]));
    expect(view.now.phase).not.toBe("resuming");
  });

  it("refuses a message that would get lost", async () => {
    const { chat, view, read } = chatWith([question, { ...answer, metadata: { runId: RUN } }]);
    has([question], RUN);
    routes[`GET /api/chat/${CHAT}/stream`] = () => {};
    void read();
    await until(() => expect(view.now.phase).toBe("resuming"));
    expect(chat.send("more")).toBe(false);
    expect(view.now.unsent).toBeUndefined();
  });
});

it("a chat keeps its agent, but may change it until the server has taken a message", async () => {
  const { chat, view, sdk, requests } = chatWith();
  void chat.dispatch({ type: "agent-chosen", agentId: "gone" });
  routes["POST /api/chat"] = (_, response) => refuse(response, 400, "agent_not_found");
  chat.send("first");
  await until(() => expect(view.now.failed).toBe("sending"));
  await until(() => expect(sdk.messages).toEqual([]));
  void chat.dispatch({ type: "agent-chosen", agentId: "there" });
  routes["POST /api/chat"] = answers("Yes.");
  chat.send("first");
  await until(() => expect(sdk.messages).toHaveLength(2));
  void chat.dispatch({ type: "agent-chosen", agentId: undefined });
  await until(() => expect(view.progress).toBe("idle"));
  chat.send("second");
  await until(() => expect(requests("POST /api/chat")).toHaveLength(3));
  expect(requests("POST /api/chat").map(({ body }) => JSON.parse(body).agentId)).toEqual(["gone", "there", "there"]);
});
