import type { ServerResponse } from "node:http";

import { describe, expect, it } from "vitest";

import { refuse, stream, write } from "../client/fixture";
import { CHAT, END, RUN, answer, answers, begin, chatWith, frame, has, json, question, routes, text, until } from "./fixture";
import type { ChatMessage } from "./message";

const STREAM = `GET /api/chat/${CHAT}/stream`;
const MESSAGES = "GET /api/chat/conversation/messages";
const CONVERSATION = "GET /v1/conversations/conversation";

const other: ChatMessage = { id: "q2", role: "user", parts: [{ type: "text", text: "from elsewhere" }] };
const unfinished: ChatMessage = { ...answer, metadata: { runId: RUN, conversationId: "conversation" }, parts: [{ type: "text", text: "Half" }] };

describe("a message from another page", () => {
  it("waits for the current answer's end before the page reads it", async () => {
    const { state, speaking, reading, shown, requests } = chatWith();
    let pending: ServerResponse | undefined;
    routes["POST /api/chat"] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin("a") + text("Half"));
      pending = response;
    };
    speaking.send("hello");
    await until(() => expect(shown()).toEqual(["hello", "Half"]));
    const [sent] = state.sdk.messages;
    has([sent!, { ...answer, id: "a" }, other], "run-2");
    routes[STREAM] = (_, response) => (stream(response, "run-2"), void response.end(begin("a2", "run-2") + text("To you too.") + END));
    reading.hear();
    await write(pending!, frame({ type: "text-delta", id: "t", delta: " and half" }));
    await until(() => expect(shown()).toEqual(["hello", "Half and half"]));
    // An earlier request would be there now.
    await fetch("/v1/conversations/conversation");
    expect(requests(CONVERSATION)).toHaveLength(1);

    pending!.end(END);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "To you too."]));
    await until(() => expect(state.progress).toBe("idle"));
    expect(requests(MESSAGES)).toHaveLength(1);
  });

  it("also causes a read if its notice arrives at the very end of an answer", async () => {
    const { state, reading, shown, requests } = chatWith([question]);
    has([question, answer, other]);
    routes[STREAM] = answers("Whole.");
    await reading.resume(RUN);
    expect(state.isAsking).toBe(true);
    reading.hear();
    expect(requests(CONVERSATION)).toHaveLength(0);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere"]));
  });

  it("waits until the shown answer has ended", async () => {
    const { state, reading, shown, requests } = chatWith([question, unfinished]);
    has([question, other], RUN);
    let pending: ServerResponse | undefined;
    routes[STREAM] = async (_, response) => {
      stream(response, "run-2");
      await write(response, begin("a2", "run-2"));
      pending = response;
    };
    void reading.read();
    await until(() => expect(state.sdk.lastMessage?.id).toBe("a2"));
    expect(shown()).toEqual(["hello", "from elsewhere", "Half"]);

    has([question, answer, other], "run-2");
    const next = begin("a2", "run-2") + frame({ type: "start-step" }) + text("To you");
    routes[STREAM] = (_, response) => (stream(response, "run-2"), void response.end(next + END));
    // The second answer has begun, so the first one is complete.
    await write(pending!, frame({ type: "start-step" }));
    await until(() => expect(state.sdk.lastMessage?.parts).toHaveLength(1));
    await write(pending!, text("To you"));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "To you"]));
    await until(() => expect(state.progress).toBe("idle"));
    expect(requests(MESSAGES)).toHaveLength(2);
  });

  it("causes one read, however fast the next answer comes", async () => {
    const { state, reading, shown, requests } = chatWith([question, unfinished]);
    has([question, other], RUN);
    let pending: ServerResponse | undefined;
    routes[STREAM] = async (_, response) => {
      stream(response, "run-2");
      await write(response, begin("a2", "run-2"));
      pending = response;
    };
    void reading.read();
    await until(() => expect(pending).toBeDefined());

    let late: ServerResponse | undefined;
    routes[CONVERSATION] = (_, response) => void (late ??= response);
    await write(pending!, text("To"));
    await until(() => expect(late).toBeDefined());
    for (const delta of [" you", " and", " yours"]) {
      await write(pending!, frame({ type: "text-delta", id: "t", delta }));
      await until(() => expect(state.sdk.lastMessage?.parts.at(-1)).toMatchObject({ text: expect.stringContaining(delta) }));
    }
    has([question, answer, other], "run-2");
    routes[STREAM] = (_, response) => (stream(response, "run-2"), void response.end(begin("a2", "run-2") + text("To you and yours.") + END));
    json({ id: "conversation", agent_id: null, live_run_id: "run-2", last_message_at: null })(undefined, late!);
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "To you and yours."]));
    expect(requests(CONVERSATION)).toHaveLength(2);
  });

  it("hides no answer that this page has not shown", async () => {
    const { state, reading, shown } = chatWith();
    has([question, other], RUN);
    routes[STREAM] = (_, response) => {
      has([question, answer, other, { ...answer, id: "a2" }]);
      stream(response, "run-2");
      response.end(begin("a2", "run-2") + text("To you too.") + END);
    };
    state.set({ conversationId: "conversation" });
    await reading.read();
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "from elsewhere", "Hello to you."]));
    await until(() => expect(state.progress).toBe("idle"));
  });
});

it("the page does not mistake the next answer for one that waits for its turn", async () => {
  const { state, speaking, reading, shown, requests } = chatWith([question, unfinished]);
  const whole: ChatMessage = { ...answer, metadata: { ...unfinished.metadata, status: "completed" } };
  has([question, whole]);
  routes[STREAM] = (_, response) => {
    stream(response, RUN);
    response.end(begin("a") + text("Hello to you.") + frame({ type: "finish", messageMetadata: { status: "completed" } }) + "data: [DONE]\n\n");
  };
  routes["POST /api/chat"] = (_, response) => (stream(response, "run-2"), void response.end(begin("a2", "run-2") + text("There.") + END));
  // The page holds the messages for a moment after it has read the history.
  const stop = state.subscribe(() => {
    if (!state.now.held || state.now.isResuming || requests(MESSAGES).length === 0) return;
    stop();
    expect(speaking.send("more")).toBe(true);
  });
  await reading.resume(RUN);
  await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "There."]));
  await until(() => expect(state.progress).toBe("idle"));
  expect(requests(CONVERSATION)).toHaveLength(1);
});

it("an outdated read reports no trouble", async () => {
  const { state, speaking, reading, shown, requests } = chatWith([question, answer]);
  let lost: ServerResponse | undefined;
  routes[CONVERSATION] = (_, response) => void (lost = response);
  void reading.read();
  await until(() => expect(lost).toBeDefined());
  has([question, answer]);
  let accepted: ServerResponse | undefined;
  routes["POST /api/chat"] = (_, response) => void (accepted = response);
  speaking.send("more");
  await until(() => expect(accepted).toBeDefined());
  lost!.socket?.resetAndDestroy();
  // The second try of the read comes after its report.
  await until(() => expect(requests(CONVERSATION)).toHaveLength(2));
  expect(state.now.isReconnecting).toBe(false);
  answers("Whole.")(undefined, accepted!);
  await until(() => expect(shown().at(-1)).toBe("Whole."));
});

it("a cancelled run ends the retry notice", async () => {
  const { state, speaking, shown } = chatWith([question, answer]);
  routes["POST /api/chat"] = async (_, response) => {
    stream(response, RUN);
    await write(response, begin() + text("Half"));
    await until(() => expect(shown().at(-1)).toBe("Half"));
    await write(response, frame({ type: "data-attempt", data: { attempt: 2, base: "1-2", crashes: 1, maxCrashes: 3 } }));
  };
  let resumed: ServerResponse | undefined;
  routes[STREAM] = (_, response) => void (resumed = response);
  has([question, { ...answer, metadata: { ...answer.metadata, status: "cancelled" } }]);
  speaking.send("more");
  await until(() => expect(resumed).toBeDefined());
  expect(state.now.retrying).toEqual({ attempt: 2, of: 3 });
  resumed!.writeHead(204).end();
  await until(() => expect(state.progress).toBe("idle"));
  expect(state.now.retrying).toBeUndefined();
});

it("a failed stop leaves no problem on a complete answer", async () => {
  const { state, speaking, shown } = chatWith();
  let pending: ServerResponse | undefined;
  routes["POST /api/chat"] = async (_, response) => {
    stream(response, RUN);
    await write(response, begin() + text("Whole."));
    pending = response;
  };
  routes[`POST /api/chat/${CHAT}/stop`] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "600" });
  speaking.send("first");
  await until(() => expect(shown()).toEqual(["first", "Whole."]));
  await speaking.stop();
  expect(state.now.failed).toBe("reading");
  pending!.end(END);
  await until(() => expect(state.progress).toBe("idle"));
  expect(state.now).toMatchObject({ problem: undefined, failed: undefined });
});
