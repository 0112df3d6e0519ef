import type { ServerResponse } from "node:http";

import { refuse, stream, write } from "holdfast-client/fixture";
import { describe, expect, it } from "vitest";

import { CHAT, RUN, answers, asking, begin, chatWith, frame, has, json, open, question, requesting, routes, until } from "./fixture";

const APPROVAL = `POST /v1/runs/${RUN}/approvals/p`;
const RESULT = `POST /v1/runs/${RUN}/tool_results/c`;
const STREAM = `GET /api/chat/${CHAT}/stream`;
const MESSAGES = "GET /api/chat/conversation/messages";
const STOP = `POST /api/chat/${CHAT}/stop?runId=${RUN}`;
const APPROVE = { decision: "approve" } as const;

describe("an answer to a card", () => {
  it.each<[string, string, (response: ServerResponse) => void]>([
    ["a first answer", "done", (response) => json({})(undefined, response)],
    ["a second answer", "answered elsewhere", (response) => refuse(response, 409, "already_decided")],
  ])("%s does not interrupt a message that the reader sends instead", async (_, outcome, end) => {
    const { chat, view, sdk, shown, requests } = chatWith([question, requesting]);
    let [decided, accepted] = [undefined, undefined] as (ServerResponse | undefined)[];
    routes[APPROVAL] = (_, response) => void (decided = response);
    routes["POST /api/chat"] = (_, response) => void (accepted = response);
    const given = chat.decide(requesting, "p", APPROVE);
    await until(() => expect(decided).toBeDefined());
    expect(chat.send("never mind")).toBe(true);
    await until(() => expect(accepted).toBeDefined());
    end(decided!);
    expect(await given).toBe(outcome);
    expect(view.progress).toBe("submitted");

    has([question, requesting, sdk.lastMessage!, { ...asking, id: "b", parts: [{ type: "text", text: "All right." }] }]);
    answers("All right.")(undefined, accepted!);
    await until(() => expect(shown().slice(2)).toEqual(["never mind", "All right."]));
    expect(view.now).toMatchObject({ unsent: undefined, problem: undefined });
    // The page reads the card's outcome after the stream.
    await until(() => expect(requests(MESSAGES)).toHaveLength(1));
    await until(() => expect(view.progress).toBe("idle"));
    expect(requests(STREAM)).toHaveLength(0);
  });

  it("makes the page follow the run, also while the page reads", async () => {
    const { chat, view, read, shown, requests } = chatWith([question, asking]);
    has([question], RUN);
    let pending: ServerResponse | undefined;
    routes[STREAM] = async (_, response) => {
      stream(response, RUN);
      await write(response, begin("a") + frame({ type: "start-step" }) + frame({ type: "tool-input-available", toolCallId: "c", toolName: "ask_user", input: {} }));
      pending = response;
    };
    routes[RESULT] = json({});
    void read();
    await until(() => expect(pending).toBeDefined());
    expect(view.now.held).toBeDefined();
    routes[STREAM] = answers("Thank you.");
    expect(await chat.answer(asking, "c", { output: { answer: "yes" } })).toBe("done");
    await until(() => expect(shown().at(-1)).toBe("Thank you."));
    await until(() => expect(view.progress).toBe("idle"));
    expect(requests(STREAM)).toHaveLength(2);
  });

  it("opens no stream in a closed chat", async () => {
    const { chat, requests } = chatWith([question, requesting]);
    let decided: ServerResponse | undefined;
    routes[APPROVAL] = (_, response) => void (decided = response);
    const leave = open(chat);
    const given = chat.decide(requesting, "p", APPROVE);
    await until(() => expect(decided).toBeDefined());
    leave();
    json({})(undefined, decided!);
    expect(await given).toBe("done");
    await chat.dispatch({ type: "read" });
    expect(requests(STREAM)).toHaveLength(0);
  });

  it("is the reader's own when only its receipt was lost", async () => {
    const { chat } = chatWith([question, requesting]);
    has([question, requesting]);
    routes[APPROVAL] = (_, response) => void response.socket?.resetAndDestroy();
    await expect(chat.decide(requesting, "p", APPROVE)).rejects.toMatchObject({ status: 0 });
    routes[APPROVAL] = (_, response) => refuse(response, 409, "already_decided");
    expect(await chat.decide(requesting, "p", APPROVE)).toBe("done");
  });

  it("drops a stop that has not arrived", async () => {
    const { chat, stop, shown, requests } = chatWith([question, requesting]);
    routes[STOP] = (_, response) => refuse(response, 503, "database_away", { "retry-after": "1" });
    const stopped = stop();
    await until(() => expect(requests(STOP)).toHaveLength(1));
    routes[APPROVAL] = json({});
    routes[STREAM] = answers("Done.");
    await chat.decide(requesting, "p", APPROVE);
    // The stop ends before its next try.
    await stopped;
    await until(() => expect(shown().at(-1)).toBe("Done."));
    expect(requests(STOP)).toHaveLength(1);
  });

  it("wins over an older response of the server", async () => {
    const known = { type: "dynamic-tool", toolName: "x", toolCallId: "c0", state: "output-available", input: {}, output: "o", approval: { id: "p0" } };
    const both = { ...requesting, parts: [known, ...requesting.parts] } as typeof requesting;
    const { chat, view, read } = chatWith([question, both]);
    let learned: ServerResponse | undefined;
    has([question, both]);
    routes[`GET /v1/runs/${RUN}/approvals`] = (_, response) => void (learned = response);
    void read();
    await until(() => expect(learned).toBeDefined());
    routes[APPROVAL] = json({});
    routes[STREAM] = answers("Done.");
    await chat.decide(both, "p", APPROVE);
    const items = [["p0", "approved"], ["p", "pending"]].map(([id, status]) => ({ id, status, reason: null }));
    json({ items })(undefined, learned!);
    await until(() => expect(view.now.verdicts.get("p0")).toEqual({ approved: true }));
    expect(view.now.verdicts.get("p")).toEqual({ approved: true });
  });

  it("clears the problem of a failed read", async () => {
    const { chat, view, read, shown } = chatWith([question, requesting]);
    has([question], RUN);
    routes[STREAM] = (_, response) => refuse(response, 403, "forbidden");
    await read();
    await until(() => expect(view.now).toMatchObject({ failed: "reading", held: undefined }));
    routes[APPROVAL] = json({});
    routes[STREAM] = answers("Done.");
    await chat.decide(requesting, "p", APPROVE);
    await until(() => expect(shown().at(-1)).toBe("Done."));
    await until(() => expect(view.progress).toBe("idle"));
    expect(view.now).toMatchObject({ problem: undefined, failed: undefined });
  });
});
