import type { ServerResponse } from "node:http";

import { refuse, stream, write } from "holdfast-client/fixture";
import { describe, expect, it } from "vitest";

import { CHAT, END, RUN, answer, answers, begin, chatWith, frame, has, json, question, routes, text, until } from "./fixture";
import type { ChatMessage } from "./message";
import { isAsking } from "./state";

const STREAM = `GET /api/chat/${CHAT}/stream`;
const MESSAGES = "GET /api/chat/conversation/messages";
const CONVERSATION = "GET /v1/conversations/conversation";

const other: ChatMessage = { id: "q2", role: "user", parts: [{ type: "text", text: "from elsewhere" }] };
const unfinished: ChatMessage = { ...answer, metadata: { runId: RUN, conversationId: "conversation" }, parts: [{ type: "text", text: "Half" }] };

describe("a message from another page", () => {
  it("waits for the current answer's end before the page reads it", async () => {
    const { chat, view, sdk, shown, requests } = chatWith();
    let pending: ServerResponse | undefined;
    routes["POST /api/chat"] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin("a") + text("Half"));
      pending = response;
    };
    chat.send("hello");
    await until(() => expect(shown()).toEqual(["hello", "Half"]));
    const [sent] = sdk.messages;
    has([sent!, { ...answer, id: "a" }, other], "run-2");
    routes[STREAM] = (_, response) => (stream(response, "run-2"), void response.end(begin("a2", "run-2") + text("To you too.") + END));
    void chat.dispatch({ type: "changed" });
    await write(pending!, frame({ type: "text-delta", id: "t", delta: " and half" }));
    await until(() => expect(shown()).toEqual(["hello", "Half and half"]));
    // An earlier request would be there now.
    await fetch("/v1/conversations/conversation");
    expect(requests(CONVERSATION)).toHaveLength(1);

    pending!.end(END);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "To you too."]));
    await until(() => expect(view.progress).toBe("idle"));
    expect(requests(MESSAGES)).toHaveLength(1);
  });

  it("also causes a read if its notice arrives at the very end of an answer", async () => {
    const { chat, follow, shown, requests } = chatWith([question]);
    has([question, answer, other]);
    routes[STREAM] = answers("Whole.");
    await follow();
    expect(isAsking(chat.now)).toBe(true);
    void chat.dispatch({ type: "changed" });
    expect(requests(CONVERSATION)).toHaveLength(0);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere"]));
  });

  it("waits until the shown answer has ended", async () => {
    const { view, sdk, read, shown, requests } = chatWith([question, unfinished]);
    has([question, other], RUN);
    let pending: ServerResponse | undefined;
    routes[STREAM] = async (_, response) => {
      stream(response, "run-2");
      await write(response, begin("a2", "run-2"));
      pending = response;
    };
    void read();
    await until(() => expect(sdk.lastMessage?.id).toBe("a2"));
    expect(shown()).toEqual(["hello", "from elsewhere", "Half"]);

    has([question, answer, other], "run-2");
    const next = begin("a2", "run-2") + frame({ type: "start-step" }) + text("To you");
    routes[STREAM] = (_, response) => (stream(response, "run-2"), void response.end(next + END));
    // The second answer has begun, so the first one is complete.
    await write(pending!, frame({ type: "start-step" }));
    await until(() => expect(sdk.lastMessage?.parts).toHaveLength(1));
    await write(pending!, text("To you"));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "To you"]));
    await until(() => expect(view.progress).toBe("idle"));
    expect(requests(MESSAGES)).toHaveLength(2);
  });

  it("causes one read, however fast the next answer comes", async () => {
    const { sdk, read, shown, requests } = chatWith([question, unfinished]);
    has([question, other], RUN);
    let pending: ServerResponse | undefined;
    routes[STREAM] = async (_, response) => {
      stream(response, "run-2");
      await write(response, begin("a2", "run-2"));
      pending = response;
    };
    void read();
    await until(() => expect(pending).toBeDefined());

    let late: ServerResponse | undefined;
    routes[CONVERSATION] = (_, response) => void (late ??= response);
    await write(pending!, text("To"));
    await until(() => expect(late).toBeDefined());
    for (const delta of [" you", " and", " yours"]) {
      await write(pending!, frame({ type: "text-delta", id: "t", delta }));
      await until(() => expect(sdk.lastMessage?.parts.at(-1)).toMatchObject({ text: expect.stringContaining(delta) }));
    }
    has([question, answer, other], "run-2");
    routes[STREAM] = (_, response) => (stream(response, "run-2"), void response.end(begin("a2", "run-2") + text("To you and yours.") + END));
    json({ id: "conversation", agent_id: null, live_run_id: "run-2", last_message_at: null })(undefined, late!);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "To you and yours."]));
    expect(requests(CONVERSATION)).toHaveLength(2);
  });

  it("hides no answer that this page has not shown", async () => {
    const { chat, view, read, shown } = chatWith();
    has([question, other], RUN);
    routes[STREAM] = (_, response) => {
      has([question, answer, other, { ...answer, id: "a2" }]);
      stream(response, "run-2");
      response.end(begin("a2", "run-2") + text("To you too.") + END);
    };
    chat.now = { ...chat.now, conversationId: "conversation" };
    await read();
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "Hello to you."]));
    await until(() => expect(view.progress).toBe("idle"));
  });
});

it("the page does not mistake the next answer for one that waits for its turn", async () => {
  const { chat, view, follow, shown, requests } = chatWith([question, unfinished]);
  const whole: ChatMessage = { ...answer, metadata: { ...unfinished.metadata, status: "completed" } };
  has([question, whole]);
  routes[STREAM] = (_, response) => {
    stream(response, RUN);
    response.end(begin("a") + text("Hello to you.") + frame({ type: "finish", messageMetadata: { status: "completed" } }) + "data: [DONE]\n\n");
  };
  routes["POST /api/chat"] = (_, response) => (stream(response, "run-2"), void response.end(begin("a2", "run-2") + text("There.") + END));
  // The page holds the messages for a moment after it has read the history.
  const stop = chat.subscribe(() => {
    if (!view.now.held || view.now.phase === "resuming" || requests(MESSAGES).length === 0) return;
    stop();
    expect(chat.send("more")).toBe(true);
  });
  await follow();
  await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "There."]));
  await until(() => expect(view.progress).toBe("idle"));
  expect(requests(CONVERSATION)).toHaveLength(1);
});

it("an outdated read reports no trouble", async () => {
  const { chat, view, read, shown, requests } = chatWith([question, answer]);
  let lost: ServerResponse | undefined;
  routes[CONVERSATION] = (_, response) => void (lost = response);
  void read();
  await until(() => expect(lost).toBeDefined());
  has([question, answer]);
  let accepted: ServerResponse | undefined;
  routes["POST /api/chat"] = (_, response) => void (accepted = response);
  chat.send("more");
  await until(() => expect(accepted).toBeDefined());
  lost!.socket?.resetAndDestroy();
  // The second try of the read comes after its report.
  await until(() => expect(requests(CONVERSATION)).toHaveLength(2));
  expect(view.now.isReconnecting).toBe(false);
  answers("Whole.")(undefined, accepted!);
  await until(() => expect(shown().at(-1)).toBe("Whole."));
});

it("a cancelled run ends the retry notice", async () => {
  const { chat, view, shown } = chatWith([question, answer]);
  routes["POST /api/chat"] = async (_, response) => {
    stream(response, RUN);
    await write(response, begin() + text("Half"));
    await until(() => expect(shown().at(-1)).toBe("Half"));
    await write(response, frame({ type: "data-attempt", data: { attempt: 2, base: "1-2", crashes: 1, maxCrashes: 3 } }));
  };
  let resumed: ServerResponse | undefined;
  routes[STREAM] = (_, response) => void (resumed = response);
  has([question, { ...answer, metadata: { ...answer.metadata, status: "cancelled" } }]);
  chat.send("more");
  await until(() => expect(resumed).toBeDefined());
  expect(view.now.retrying).toEqual({ attempt: 2, of: 3 });
  resumed!.writeHead(204).end();
  await until(() => expect(view.progress).toBe("idle"));
  expect(view.now.retrying).toBeUndefined();
});

it("a failed stop leaves no problem on a complete answer", async () => {
  const { chat, view, stop, shown } = chatWith();
  let pending: ServerResponse | undefined;
  routes["POST /api/chat"] = async (_, response) => {
    stream(response, RUN);
    await write(response, begin() + text("Whole."));
    pending = response;
  };
  routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "600" });
  chat.send("first");
  await until(() => expect(shown()).toEqual(["first", "Whole."]));
  await stop();
  expect(view.now.failed).toBe("reading");
  pending!.end(END);
  await until(() => expect(view.progress).toBe("idle"));
  expect(view.now).toMatchObject({ problem: undefined, failed: undefined });
});
