import { Problem } from "holdfast-client/problem";
import { expect, test } from "vitest";

import { type ChatMessage, cutOffBy, type Part, textOf } from "../chat/message";
import { en } from "../i18n/en";
import { announcementOf } from "./announcement";
import { answerIn, questionOf } from "./questionInput";
import { type Call, durationsOf, inBrief, nameOf, standingOf, wasEdited, wasInterrupted } from "./call";
import { nowDoing, wasDone } from "./doing";
import { readAnswer, readInput } from "./json";
import { detailOf, reasonFor } from "./reason";
import { type Item, segmentsOf } from "./segments";

const text = (text: string): Part => ({ type: "text", text, state: "done" });
const reasoning = (text: string): Part => ({ type: "reasoning", text, state: "done" });
const call = (fields: object = {}) =>
  ({ type: "dynamic-tool", toolName: "port__tide", toolCallId: "c", providerExecuted: true, state: "output-available", input: {}, output: "x", ...fields }) as Call;
const own = (fields: object = {}) => ({ type: "tool-ask_user", toolCallId: "q", state: "input-available", input: { question: "Which?" }, ...fields }) as Call;
const kinds = (parts: Part[]) => segmentsOf(parts).map((segment) => segment.kind);
const message = (parts: Part[]): ChatMessage => ({ id: "m", role: "assistant", parts });

test("the steps between two texts are one activity", () => {
  const parts: Part[] = [reasoning("a"), { type: "step-start" }, call(), text("\n\n"), call(), text("said"), reasoning("b")];
  expect(kinds(parts)).toEqual(["activity", "text", "activity"]);
  expect(segmentsOf(parts)[0]).toMatchObject({ items: [{ kind: "reasoning" }, { kind: "call" }, { kind: "call" }] });
});

test("the history has the duration of a thought", () => {
  const part = { ...reasoning("a"), providerMetadata: { holdfast: { durationMs: 3_000 } } } as Part;
  expect(segmentsOf([part])[0]).toMatchObject({ items: [{ kind: "reasoning", durationMs: 3_000 }] });
  expect(segmentsOf([reasoning("a")])[0]).toEqual({ key: "0", kind: "activity", items: [{ kind: "reasoning", text: "a", isStreaming: false }] });
});

test("the history knows an input that a human edited before the approval", () => {
  const question = (edited?: boolean) => ({ type: "data-question", id: "p", data: { approvalId: "p", callId: "c", kind: "policy", edited } }) as Part;
  expect([wasEdited(message([question(true)]), "p"), wasEdited(message([question()]), "p"), wasEdited(message([]), "p")]).toEqual([true, false, false]);
});

test.each([
  [{ finish_reason: "length" }, "length"],
  [{ finish_reason: "content_filter" }, "content_filter"],
  [{ finish_reason: "stop" }, undefined],
  [{}, undefined],
])("an answer with %j has the limit %s", (metadata, expected) => {
  expect(cutOffBy({ ...message([]), metadata })).toBe(expected);
});

test("the page names the limit of a message that is too long", () => {
  const tooLong = (detail: string) => reasonFor(en.trouble, new Problem(400, "content_too_long", detail));
  expect(tooLong("The content has 40000 bytes; at most 32768 are taken.")).toBe("The message is too long: the limit is 32 KiB.");
  expect(tooLong("Too long.")).toBe("The message is too long.");
});

test("the files of tools are one segment after the activity of their calls", () => {
  const file = (id: string, name: unknown) => ({ type: "file", mediaType: "image/png", url: `/v1/files/${id}`, providerMetadata: { holdfast: { id, name, bytes: 3 } } }) as Part;
  const foreign: Part = { type: "file", mediaType: "image/png", url: "https://elsewhere.example/a.png" };
  const parts = [call(), call(), file("a", "draw.png"), { type: "data-call", data: { toolCallId: "c", durationMs: 1 } } as Part, file("b", 5), foreign, reasoning("next")];
  expect(kinds(parts)).toEqual(["activity", "files", "activity"]);
  const facts = { mediaType: "image/png", bytes: 3 };
  expect(segmentsOf(parts)[1]).toMatchObject({ files: [{ id: "a", name: "draw.png", ...facts }, { id: "b", name: "", ...facts }] });
});

test("unknown parts leave no trace", () => {
  const unknown = { type: "data-weather", data: { sky: "blue" } } as unknown as Part;
  expect(kinds([reasoning("a"), unknown, call(), { type: "data-state", data: { state: "thinking" } }])).toEqual(["activity"]);
});

test("a call with an approval is a segment by itself", () => {
  expect(kinds([call(), call({ state: "approval-requested", approval: { id: "p" } }), call()])).toEqual(["activity", "approval", "activity"]);
});

test("a call of this page is a question once it is complete", () => {
  expect(kinds([own({ state: "input-streaming" })])).toEqual(["activity"]);
  expect(kinds([own()])).toEqual(["question"]);
  expect(kinds([own({ state: "output-available", output: { answer: "x" } })])).toEqual(["question"]);
  expect(kinds([call({ state: "input-available", providerExecuted: undefined })])).toEqual(["question"]);
});

test("a segment keeps its key while the message grows", () => {
  const parts = [reasoning("a"), call(), text("b"), own(), text("c")];
  const keys = segmentsOf(parts).map((segment) => segment.key);
  parts.forEach((_, length) => expect(keys.slice(0, kinds(parts.slice(0, length)).length)).toEqual(segmentsOf(parts.slice(0, length)).map((segment) => segment.key)));
});

test("the page shows cards, plans and warnings, and no context beside an answer", () => {
  const context = (compressed: boolean): Part => ({ type: "data-context", data: { tokens: 1, budget: 2, compressed } });
  expect(kinds([context(true), context(false), { type: "data-warning", data: { code: "x", message: "y" } }])).toEqual(["warning"]);
  expect(kinds([{ type: "data-plan", data: { id: "p", status: "executing", steps: [], metadata: { goal: "g" } } }, { type: "data-briefing", data: { briefing_id: "b", title: "t", summary: "s" } }])).toEqual(["plan", "briefing"]);
});

test("a copy has the message's texts", () => expect(textOf(message([text(" a "), call(), text("\n\n"), text("b")]))).toBe("a\n\nb"));
test("durations belong to their calls", () => {
  expect(durationsOf(message([call(), { type: "data-call", data: { toolCallId: "c", durationMs: 12 } }])).get("c")).toBe(12);
});

test("a server's tool has two names", () => {
  expect(nameOf(call())).toEqual({ server: "port", tool: "tide" });
  expect(nameOf(own())).toEqual({ tool: "ask_user" });
});

test("an input fits in one line", () => expect(inBrief({ text: "a\n b", n: 5, list: [1] })).toBe("text: a b, n: 5, list: [1]"));

const approval = { id: "p" };
test.each<[string, Call, boolean, string]>([
  ["the model writes arguments", call({ state: "input-streaming" }), true, "preparing"],
  ["a call runs", call({ state: "input-available" }), true, "running"],
  ["a call has no outcome", call({ state: "input-available" }), false, "unfinished"],
  ["a question is open", own(), true, "asked"],
  ["a run ended before an answer", own(), false, "unfinished"],
  ["an approval is open", call({ state: "approval-requested", approval }), true, "asked"],
  ["an approval was superseded", call({ state: "approval-requested", approval: { id: "p", approved: false } }), true, "unfinished"],
  ["an approved call runs", call({ state: "approval-responded", approval: { id: "p", approved: true } }), true, "running"],
  ["a human denies a call", call({ state: "approval-responded", approval: { id: "p", approved: false } }), true, "denied"],
  ["a call is denied", call({ state: "output-denied", approval }), false, "denied"],
  ["no human has answered", call({ state: "output-error", approval: { id: "p", approved: false } }), false, "expired"],
  ["a tool has failed", call({ state: "output-error", errorText: "no" }), false, "failed"],
  ["a tool has answered", call(), true, "completed"],
])("%s", (_, call, isLive, standing) => expect(standingOf(call, isLive)).toBe(standing));

test("an approval that repeats a started call counts as interrupted", () => {
  expect(wasInterrupted(call({ state: "approval-requested", approval }))).toBe(true);
  expect(wasInterrupted(call({ state: "approval-requested", approval, providerExecuted: undefined }))).toBe(false);
});

const item = (call: Call): Item => ({ kind: "call", call });
const thought: Item = { kind: "reasoning", text: "x", isStreaming: false };
test.each<[Item[], string | undefined, string]>([
  [[], undefined, "Thinking…"],
  [[], "executing_plan", "Working through the plan…"],
  [[item(call({ state: "input-streaming" }))], undefined, "Preparing tide…"],
  [[thought, item(call({ state: "input-available" }))], "executing_plan", "Calling tide…"],
  [[item(call()), thought], undefined, "Thinking…"],
])("the line of an active activity, %#", (items, state, line) => expect(nowDoing(en.activity, items, state)).toBe(line));

test.each<[Item[], string | undefined, string]>([
  [[thought], "4 s", "Thought for 4 s"],
  [[thought], undefined, "Thought"],
  [[item(call())], undefined, "Called tide"],
  [[thought, item(call()), item(call({ state: "output-error", errorText: "no" }))], "4 s", "Thought for 4 s · 2 calls · 1 failed"],
])("the line of an ended activity, %#", (items, thinking, line) => expect(wasDone(en.activity, items, thinking)).toBe(line));

test("the page reads a question from its call", () => {
  expect(questionOf(own({ input: { question: "Which?", options: ["a", "b", "a", 5], multiple: true } }))).toEqual({ question: "Which?", options: ["a", "b"], isMultiple: true, isOurs: true });
  expect(questionOf({ type: "dynamic-tool", toolName: "ask", toolCallId: "1", state: "input-available", input: { question: "Which?", of: 2 } } as Call)).toEqual({
    question: "Which?",
    options: [],
    isMultiple: false,
    rest: { of: 2 },
    isOurs: false,
  });
  expect(questionOf(own({ input: { text: "no" } }))).toBeUndefined();
});

test("the page shows an answer in words", () => {
  expect(answerIn({ answer: "blue" })).toBe("blue");
  expect(answerIn({ answer: ["a", "b"] })).toBe("a, b");
  expect(answerIn("plain")).toBe("plain");
  expect(answerIn({ x: 1 })).toBe('{"x":1}');
});

test("an input must be an object", () => {
  expect(readInput("{oops")).toEqual({ ok: false, reason: "not JSON" });
  expect(readInput("[1]")).toEqual({ ok: false, reason: "not an object" });
  expect(readInput('{"a":1}')).toEqual({ ok: true, value: { a: 1 } });
});

test("an answer that looks like JSON is JSON", () => {
  expect(readAnswer(' {"a":1} ')).toEqual({ a: 1 });
  expect(readAnswer("{oops")).toBe("{oops");
  expect(readAnswer("5")).toBe("5");
});

test("the page announces only beginnings and ends", () => {
  expect(announcementOf("idle", "submitted")).toBe("answering");
  expect(announcementOf("submitted", "streaming")).toBeUndefined();
  expect(announcementOf("streaming", "idle")).toBe("complete");
  expect(announcementOf("streaming", "waiting")).toBe("waiting");
  expect(announcementOf("loading", "idle")).toBeUndefined();
});

test.each([
  [new Problem(429, "rate_limited", "10 a minute"), "Too many messages in a short time.", undefined],
  [new Problem(0, "model_refused", "no credit"), "The model did not accept the request.", "no credit"],
  [new Problem(0, "model_key_refused", "OpenAI says no"), "The model's provider refused this server's key.", "OpenAI says no"],
  [new Problem(0, "file_refused", "a.png"), "The model refused a file of the message. Send it in another form, or without it.", "a.png"],
  [new Problem(0, "new_failure", "as told"), "The answer could not be finished.", "as told"],
  [new Problem(418, "teapot", "It is a teapot."), "Something went wrong.", "It is a teapot."],
  [new Problem(500, "constructor", ""), "Something went wrong.", undefined],
])("the page describes a problem in plain words, %#", (problem, reason, detail) => {
  expect(reasonFor(en.trouble, problem)).toBe(reason);
  expect(detailOf(en.trouble, problem)).toBe(detail);
});
