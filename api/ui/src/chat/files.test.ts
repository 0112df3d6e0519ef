import { refuse, stream } from "holdfast-client/fixture";
import { describe, expect, it } from "vitest";

import type { WaitingMessage } from "./chat";
import { areSame, filesOf, partsOf } from "./files";
import { END, RUN, answer, begin, chatWith, has, json, limited, question, routes, text, until } from "./fixture";
import type { ChatMessage } from "./message";

const picture = { id: "f", name: "tide.png", mediaType: "image/png", bytes: 9 };
const notes = { id: "g", name: "notes.txt", mediaType: "text/plain", bytes: 5 };
const EVENTS = `GET /v1/runs/${RUN}/events?wire=ai-sdk`;
const MESSAGES = "/v1/conversations/conversation/messages";

const streams = (reply: string) => (_: unknown, response: Parameters<typeof stream>[0]) => {
  stream(response, RUN);
  response.end(begin() + text(reply) + END);
};
const accepted = json({ message: { id: "s" }, run: { id: RUN, conversation_id: "conversation" } });

describe("the files of a message", () => {
  it("are parts before its text", () => {
    const message = { id: "q", role: "user", parts: partsOf("look", [picture, notes]) } as ChatMessage;
    expect(message.parts.map(({ type }) => type)).toEqual(["file", "file", "text"]);
    expect(filesOf(message)).toEqual([picture, notes]);
    expect(partsOf("", [picture])).toHaveLength(1);
    expect(areSame([picture, notes], [notes, picture])).toBe(false);
    expect(areSame(undefined, [])).toBe(true);
  });
});

describe("a message with files", () => {
  it("begins a conversation, and the chat goes on in it", async () => {
    const { chat, view, shown, requests } = chatWith();
    routes["POST /v1/runs"] = accepted;
    routes[EVENTS] = streams("Nice.");
    expect(chat.send("look", [picture])).toBe(true);
    expect(view.now.unsent).toEqual({ text: "look", files: [picture], isUnderway: true });
    await until(() => expect(shown()).toEqual(["look", "Nice."]));
    await until(() => expect(view.progress).toBe("idle"));
    const [first] = requests("POST /v1/runs");
    expect(JSON.parse(first!.body)).toEqual({ input: [{ type: "image", file_id: "f" }, { type: "text", text: "look" }] });
    expect(first!.headers["idempotency-key"]).toBeDefined();
    expect([chat.conversationId, view.messages[0]!.id, filesOf(view.messages[0]!)]).toEqual(["conversation", "s", [picture]]);

    routes["POST /api/chat"] = streams("Again.");
    chat.regenerate();
    await until(() => expect(shown()).toEqual(["look", "Again."]));
    const { id, message } = JSON.parse(requests("POST /api/chat")[0]!.body);
    // The server has the files of this message.
    expect([id, message.parts]).toEqual(["conversation", [{ type: "text", text: "look" }]]);
  });

  it("may have no text", async () => {
    const { chat, requests } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = accepted;
    routes[EVENTS] = streams("Nice.");
    expect(chat.send("", [])).toBe(false);
    expect(chat.send("", [notes])).toBe(true);
    await until(() => expect(requests(EVENTS)).toHaveLength(1));
    expect(JSON.parse(requests(`POST ${MESSAGES}`)[0]!.body)).toEqual({ content: [{ type: "file", file_id: "g" }] });
  });

  it("returns with its files when the server refuses it", async () => {
    const { chat, view, shown, requests } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = limited;
    chat.send("look", [picture]);
    await until(() => expect(view.now).toMatchObject({ failed: "sending", unsent: { text: "look", files: [picture], isUnderway: false } }));
    await until(() => expect(shown()).toEqual(["hello", "Hello to you."]));
    routes[`POST ${MESSAGES}`] = accepted;
    routes[EVENTS] = streams("Nice.");
    chat.retry();
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "look", "Nice."]));
    const keys = requests(`POST ${MESSAGES}`).map(({ headers }) => headers["idempotency-key"]);
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
  });

  it("is sent once although the server is away for a moment", async () => {
    const { chat, view, shown, requests } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = (_, response) => refuse(response, 503, "database_away");
    chat.send("look", [picture]);
    await until(() => expect(view.now.isReconnecting).toBe(true));
    routes[`POST ${MESSAGES}`] = accepted;
    routes[EVENTS] = streams("Nice.");
    await until(() => expect(shown()).toEqual(["hello", "Hello to you.", "look", "Nice."]));
    expect(new Set(requests(`POST ${MESSAGES}`).map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  });

  it("that the history has is no longer unsent", async () => {
    const { chat, view, read } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = limited;
    chat.send("look", [picture]);
    await until(() => expect(view.now.failed).toBe("sending"));
    has([question, answer, { id: "s", role: "user", parts: partsOf("look", [picture]) }]);
    await read();
    expect(view.now.unsent).toBeUndefined();
    expect(filesOf(view.messages[2]!)).toEqual([picture]);
  });

  it("replaces the edited message by the server's id", async () => {
    const { chat, view, shown, requests } = chatWith([question, answer]);
    routes[`GET ${MESSAGES}`] = json({ items: [{ id: "server-q", client_id: "q" }], next: null });
    routes[`POST ${MESSAGES}`] = accepted;
    routes[EVENTS] = streams("Nice.");
    has([question, answer]);
    chat.edit("q", "hello", [picture]);
    await until(() => expect(requests(`POST ${MESSAGES}`)).toHaveLength(1));
    expect(JSON.parse(requests(`POST ${MESSAGES}`)[0]!.body)).toMatchObject({ replace_from: "server-q", content: [{ type: "image", file_id: "f" }, { type: "text", text: "hello" }] });
    await until(() => expect(shown()).toContain("Nice."));
    expect(view.now.unsent).toBeUndefined();
  });
});

describe("a message beside an answer", () => {
  it("has its files until it is taken back", async () => {
    const { chat, requests } = chatWith([question, answer]);
    routes[`POST ${MESSAGES}`] = accepted;
    routes[`POST /v1/runs/${RUN}/take_back`] = json({});
    has([question, answer]);
    await chat.post("and this", "enqueue", [notes]);
    expect(JSON.parse(requests(`POST ${MESSAGES}`)[0]!.body)).toEqual({ content: [{ type: "file", file_id: "g" }, { type: "text", text: "and this" }], mode: "enqueue" });
    const waiting: WaitingMessage = { id: "s", runId: RUN, text: "and this", files: [notes], mode: "enqueue" };
    expect(await chat.takeBack(waiting)).toEqual(waiting);
  });
});
