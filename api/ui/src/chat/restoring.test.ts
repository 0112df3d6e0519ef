import type { ServerResponse } from "node:http";

import { refuse, stream, write } from "holdfast-client/fixture";
import { describe, expect, it } from "vitest";

import { CHAT, RUN, answer, asking, begin, chatWith, frame, has, json, limited, question, routes, text, until } from "./fixture";
import type { ChatMessage } from "./message";

const MESSAGES = "GET /api/chat/conversation/messages";
const CONVERSATION = "GET /v1/conversations/conversation";
const RESTORE = "POST /v1/conversations/conversation/messages/v1/restore";
const STREAM = `GET /api/chat/${CHAT}/stream`;

const first = { number: 1, count: 2, previous: null, next: "v2" };
const second = { number: 2, count: 2, previous: "v1", next: null };
const edited: ChatMessage = { ...question, metadata: { version: second }, parts: [{ type: "text", text: "hi" }] };
const original: ChatMessage = { ...question, metadata: { version: first } };
/** The repeated answer, as the history has it. */
const again: ChatMessage = { ...answer, id: "new", metadata: { runId: RUN, conversationId: "conversation", status: "completed", version: second } };

/** The end of a run that has sent text. */
const ending = (status: ChatMessage["metadata"] & object) => frame({ type: "text-end", id: "t" }) + frame({ type: "finish", messageMetadata: status }) + "data: [DONE]\n\n";
const answered = (status: ChatMessage["metadata"] & object = { status: "completed" }) => (_: unknown, response: ServerResponse) => {
  stream(response, RUN);
  response.end(begin() + text("Hello.") + ending(status));
};

describe("a restoration", () => {
  it("posts once, and the page reads the history after it", async () => {
    const { chat, view, shown, requests } = chatWith([edited, answer]);
    routes[RESTORE] = (_, response) => {
      has([original, answer]);
      json({})(undefined, response);
    };
    await chat.restore("v1");
    expect(shown()).toEqual(["hello", "Hello to you."]);
    expect(view.messages[0]!.metadata).toEqual({ version: first });
    expect([requests(RESTORE).length, requests(MESSAGES).length]).toEqual([1, 1]);
  });

  it("notifies the other tabs", async () => {
    const { chat } = chatWith([edited, answer]);
    has([original, answer]);
    routes[RESTORE] = json({});
    const tab = new BroadcastChannel("holdfast-chat");
    const notice = new Promise((resolve) => (tab.onmessage = ({ data }: MessageEvent<{ ids: string[] }>) => resolve(data.ids)));
    await chat.restore("v1");
    expect(await notice).toEqual([CHAT, "conversation"]);
    tab.close();
  });

  it("rejects with the server's reason, and the page reads the history nevertheless", async () => {
    const { chat, view, shown, requests } = chatWith([edited, answer]);
    has([question, answer]);
    routes[RESTORE] = (_, response) => refuse(response, 409, "message_not_restorable");
    await expect(chat.restore("v1")).rejects.toMatchObject({ status: 409, code: "message_not_restorable" });
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    expect(requests(MESSAGES)).toHaveLength(1);
    expect(view.now).toMatchObject({ problem: undefined, failed: undefined });
  });

  it("cancels no run that waits for its reader", async () => {
    const { chat, view, requests } = chatWith([edited, asking]);
    expect(view.progress).toBe("waiting");
    await chat.restore("v1");
    expect(requests(RESTORE)).toHaveLength(0);
  });

  it("takes nothing from a message that the reader sends meanwhile", async () => {
    const { chat, sdk, shown, requests } = chatWith([edited, answer]);
    let restored: ServerResponse | undefined;
    routes[RESTORE] = (_, response) => void (restored = response);
    const given = chat.restore("v1");
    await until(() => expect(restored).toBeDefined());
    let pending: ServerResponse | undefined;
    routes["POST /api/chat"] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin() + text("All"));
      pending = response;
    };
    chat.send("more");
    await until(() => expect(shown()).toEqual(["hi", "Hello to you.", "more", "All"]));
    json({})(undefined, restored!);
    await given;
    expect(requests(MESSAGES)).toHaveLength(0);
    has([original, answer, sdk.messages[2]!, again]);
    pending!.end(frame({ type: "text-delta", id: "t", delta: " right." }) + ending({ status: "completed" }));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "Hello to you."]));
    expect(requests(MESSAGES)).toHaveLength(1);
  });
});

describe("the end of a repeated answer", () => {
  it.each([
    ["completed", { status: "completed" as const }],
    ["stopped", { status: "cancelled" as const }],
  ])("that was %s makes the page read the history once, for its versions", async (_, status) => {
    const { chat, view, sdk, requests } = chatWith([question, answer]);
    has([question, again]);
    routes["POST /api/chat"] = answered(status);
    chat.regenerate("a");
    await until(() => expect(sdk.lastMessage?.metadata).toMatchObject({ version: second }));
    await until(() => expect(view.progress).toBe("idle"));
    expect([sdk.messages.length, requests(MESSAGES).length, requests(STREAM).length]).toEqual([2, 1, 0]);
  });

  it("that has failed keeps its reason", async () => {
    const { chat, view, sdk, requests } = chatWith([question, answer]);
    const failed = { status: "failed", error: { code: "model_failed", message: "no" } } as const;
    has([question, { ...again, metadata: { ...again.metadata, ...failed } }]);
    routes["POST /api/chat"] = (_, response) => {
      stream(response, RUN);
      const failure = frame({ type: "message-metadata", messageMetadata: failed }) + frame({ type: "error", errorText: "no" });
      response.end(begin() + text("Hel") + failure + frame({ type: "finish" }) + "data: [DONE]\n\n");
    };
    chat.regenerate("a");
    await until(() => expect(sdk.lastMessage?.metadata).toMatchObject({ version: second }));
    expect(view.now).toMatchObject({ failed: "run", problem: { code: "model_failed" } });
    expect(requests(MESSAGES)).toHaveLength(1);
  });

  it("makes one read, even if the server still names its run as live", async () => {
    const { chat, view, requests } = chatWith([question, answer]);
    has([question], RUN);
    routes["POST /api/chat"] = answered();
    routes[STREAM] = answered();
    chat.regenerate("a");
    await until(() => expect(requests(STREAM)).toHaveLength(1));
    await until(() => expect(view.progress).toBe("idle"));
    // A further read would have begun before this one.
    await fetch("/v1/conversations/conversation");
    expect(requests(CONVERSATION)).toHaveLength(2);
  });

  it("makes the page read, also if another tab sent it, or after a reload", async () => {
    const { sdk, read, requests } = chatWith([question, answer]);
    has([question], RUN);
    routes[STREAM] = (request, response) => {
      has([question, again]);
      return answered()(request, response);
    };
    await read();
    await until(() => expect(sdk.lastMessage?.metadata).toMatchObject({ version: second }));
    expect(requests(MESSAGES)).toHaveLength(2);
  });
});

describe("an edit", () => {
  it("makes the page read the history once after its answer", async () => {
    const { chat, sdk, shown, requests } = chatWith([question, answer]);
    has([edited, { ...again, metadata: { ...again.metadata, version: undefined } }]);
    routes["POST /api/chat"] = answered();
    chat.edit("q", "hi");
    await until(() => expect(sdk.messages[0]!.metadata).toEqual({ version: second }));
    expect(shown()).toEqual(["hi", "Hello to you."]);
    expect(requests(MESSAGES)).toHaveLength(1);
  });

  it("makes the page read nothing if the server refuses it", async () => {
    const { chat, view, sdk, requests } = chatWith([question, answer]);
    routes["POST /api/chat"] = limited;
    chat.edit("q", "hi");
    await until(() => expect(view.now.unsent).toEqual({ text: "hi", instead: "q", isUnderway: false }));
    await until(() => expect(sdk.messages).toEqual([question, answer]));
    expect(requests(MESSAGES)).toHaveLength(0);
  });
});

it("the end of a message's first answer makes the page read nothing", async () => {
  const { chat, view, shown, requests } = chatWith([question, answer]);
  routes["POST /api/chat"] = answered();
  chat.send("more");
  await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "more", "Hello."]));
  await until(() => expect(view.progress).toBe("idle"));
  // A read would have begun before the second of these.
  for (const path of ["/first", "/second"]) await fetch(path);
  expect(requests(CONVERSATION)).toHaveLength(0);
});
