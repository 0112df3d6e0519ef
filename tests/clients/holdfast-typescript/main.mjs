// Uses the package `holdfast-client`: main.mjs BASE PARAMETERS. The parameters are {"client": "native"} with {"input": …, "key": …}
// or {"run_id": …, "patience": …}; or {"client": "ai-sdk", "input": …}, {"calls": true}, {"ask": …}, {"watch": …}.
import { createInterface } from "node:readline";

import { Answer, BrokenLog, ConnectionLost, HoldfastClient, Problem } from "holdfast-client";

import { ask } from "./ask.mjs";
import { chat } from "./chat.mjs";
import { watch } from "./watch.mjs";

const [base, json] = process.argv.slice(2);
const parameters = JSON.parse(json);
const client = new HoldfastClient({ baseUrl: base, patience: parameters.patience && parameters.patience * 1000 });
const got = (report) => console.log(JSON.stringify({ got: report }));

/** Returns the items of an iterator; Node 20 has no `Array.fromAsync`. */
async function all(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

async function follow() {
  const { input, key } = parameters;
  const runId = parameters.run_id ?? (await client.startRun({ input, key })).run.id;
  const answer = new Answer();
  for await (const event of client.events(runId)) {
    answer.apply(event);
    got(event);
  }
  return answer.text;
}

/** Posts a message during a call, which the next step reads. */
async function steer() {
  const { run } = await client.startRun({ input: '[call=scripted__echo {"text": "ready", "delay_ms": 5000}] [tokens=4]' });
  for await (const event of client.events(run.id)) {
    if (event.type === "tool_call.started") await client.steer(run.conversation_id, "[tokens=1] shorter");
    if (event.type === "message.steered") got({ type: event.type });
  }
  return run;
}

/** Changes the arguments of a call. */
async function approve() {
  const { run } = await client.startRun({ input: "[approval=send it] [tokens=2] x" });
  for await (const event of client.events(run.id)) {
    if (event.type === "approval.requested") {
      const { items } = await client.approvals(run.id);
      await client.decide(run.id, items[0].id, { decision: "approve", edited_input: { action: "send half" } });
    }
    if (event.type === "approval.resolved") got({ edited_input: event.edited_input });
  }
}

async function answerTool() {
  const { run } = await client.startRun({ input: "[clienttool=Which colour?] [tokens=2] x", client_tools: [{ name: "ask" }] });
  for await (const event of client.events(run.id)) {
    if (event.type === "tool_call.started" && event.by === "client") {
      await client.returnResult(run.id, event.call_id, { output: { answer: "teal" } });
    }
    if (event.type === "tool_call.completed") got({ output: event.output });
  }
}

async function cancel() {
  const { run } = await client.startRun({ input: "[tokens=2000] [delay=20] x" });
  for await (const event of client.events(run.id)) {
    if (event.type !== "message.delta") continue;
    await client.cancel(run.id);
    break;
  }
  got({ status: (await client.wait(run.id)).status });
}

async function keepFile(lines) {
  const contents = "a line of a file\n".repeat(160_000);
  // The test breaks the connection after the first piece.
  got({ uploads: contents.length });
  await lines.next();
  const stored = await client.upload(new Blob([contents]), "größe.txt");
  got({ name: stored.name, is_equal: (await (await client.download(stored.id)).text()) === contents });
  got({ files: (await all(client.files())).map(({ id }) => id === stored.id) });
  await client.deleteFile(stored.id);
}

async function calls() {
  const input = createInterface({ input: process.stdin });
  const run = await steer();
  await approve();
  await answerTool();
  await cancel();
  await keepFile(input[Symbol.asyncIterator]());
  input.close();
  got({ conversations: (await all(client.conversations())).length });
  got({ roles: (await all(client.messages(run.conversation_id))).map(({ role }) => role) });
  got({ snapshot: (await client.snapshot(run.id)).snapshot.status });
  try {
    await client.events("01a20274-a660-77df-a2a7-89516bdf4c45").next();
  } catch (error) {
    if (error instanceof Problem) got({ code: error.code });
  }
  return "called";
}

async function runProgram() {
  if (parameters.calls) return calls();
  if (parameters.ask) return ask(base, parameters.ask, () => true);
  if (parameters.watch) return (await watch(base, parameters.watch, got)).kind;
  if (parameters.client === "ai-sdk") return chat(base, parameters.input, got);
  try {
    return await follow();
  } catch (error) {
    if (error instanceof ConnectionLost) return { lost_after: error.cursor };
    if (error instanceof BrokenLog) return { broken: error.message };
    if (error instanceof Problem) return { refused: error.code };
    throw error;
  }
}

console.log(JSON.stringify({ end: await runProgram() }));
process.stdin.destroy();
