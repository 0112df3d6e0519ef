// Runs OpenAI's clients: main.mjs BASE PARAMETERS. Each step reports whether it has found what it expected.
import assert from "node:assert/strict";

import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, tool } from "@openai/agents";
import { generateText, jsonSchema, streamText } from "ai";
import OpenAI from "openai";

const [base] = process.argv.slice(2);
const baseURL = `${base}/openai/v1`;
const openai = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const steps = [];

async function step(name, body) {
  steps.push(name);
  await body();
  console.log(JSON.stringify({ got: { step: name, ok: true } }));
}

const COLOUR = "[clienttool=Which colour?] [tokens=3] x";
const ask = { type: "function", name: "ask", description: "Asks.", parameters: { type: "object", properties: {} }, strict: false };

await step("a strict stream accumulates the response", async () => {
  const stream = openai.responses.stream({ model: "default", input: '[think] [call=scripted__echo {"text":"hi"}] [tokens=8] x' });
  const kinds = new Set();
  for await (const event of stream) kinds.add(event.type);
  const response = await stream.finalResponse();
  assert.ok(kinds.has("response.output_text.delta") && kinds.has("response.mcp_call.completed"));
  const stored = await openai.responses.retrieve(response.id);
  assert.deepEqual(stored.output, JSON.parse(JSON.stringify(response.output, (key, value) => (key === "parsed" ? undefined : value))));
  assert.equal(stored.output_text, response.output_text);
});

await step("a response in the background is followed by its numbers", async () => {
  const started = await openai.responses.create({ model: "default", input: "[tokens=30] [delay=5] x", background: true });
  const numbers = [];
  let last = -1;
  for (const limit of [3, 10, Infinity]) {
    const options = last < 0 ? { stream: true } : { stream: true, starting_after: last };
    const stream = await openai.responses.retrieve(started.id, options);
    let seen = 0;
    for await (const event of stream) {
      numbers.push(event.sequence_number);
      last = event.sequence_number;
      if (++seen >= limit) break;
    }
  }
  assert.deepEqual(numbers, numbers.map((_, number) => number));
  assert.equal((await openai.responses.retrieve(started.id)).status, "completed");
});

await step("a function is called and answered", async () => {
  const first = await openai.responses.create({ model: "default", input: COLOUR, tools: [ask] });
  const call = first.output.find(({ type }) => type === "function_call");
  const output = { type: "function_call_output", call_id: call.call_id, output: "teal" };
  const second = await openai.responses.create({ model: "default", input: [output], previous_response_id: first.id, tools: [ask] });
  assert.match(second.output_text, /teal/);
});

await step("a completion streams", async () => {
  const stream = openai.chat.completions.stream({
    model: "default",
    messages: [{ role: "user", content: "[tokens=5] x" }],
    stream_options: { include_usage: true },
  });
  const completion = await stream.finalChatCompletion();
  assert.equal(completion.choices[0].finish_reason, "stop");
  assert.ok(completion.usage.completion_tokens > 0);
});

await step("the models are listed", async () => {
  const { data } = await openai.models.list();
  assert.equal(data[0].id, "default");
});

await step("an error is the client's", async () => {
  await assert.rejects(openai.responses.create({ model: "nothing", input: "x" }), (error) => error.status === 404 && error.code === "model_not_found");
});

await step("an agent of the agents SDK uses a tool", async () => {
  setTracingDisabled(true);
  const parameters = { type: "object", properties: {}, required: [], additionalProperties: true };
  const tools = [tool({ name: "ask", description: "Asks.", parameters, strict: false, execute: async () => "teal" })];
  const agent = new Agent({ name: "painter", instructions: "Paint.", model: new OpenAIResponsesModel(openai, "default"), tools });
  const result = await run(agent, COLOUR);
  assert.match(String(result.finalOutput), /teal/);
  const streamed = await run(agent, "[tokens=4] x", { stream: true });
  let text = "";
  for await (const chunk of streamed.toTextStream({ compatibleWithNodeStreams: false })) text += chunk;
  await streamed.completed;
  assert.ok(text.length > 0);
});

await step("a handoff of the agents SDK gives the run to the other agent", async () => {
  const parameters = { type: "object", properties: {}, required: [], additionalProperties: true };
  const refunds = [];
  const refund = tool({ name: "refund", description: "Refunds.", parameters, strict: false, execute: async () => `refund ${refunds.push(1)}` });
  const model = () => new OpenAIResponsesModel(openai, "default");
  // The model must call a tool, and the second agent has one only.
  const billing = new Agent({ name: "billing", instructions: "Bill.", model: model(), tools: [refund], modelSettings: { toolChoice: "required" } });
  const triage = new Agent({ name: "triage", instructions: "Sort.", model: model(), handoffs: [billing] });
  const result = await run(triage, "[call=transfer_to_billing {}] [tokens=3] x");
  assert.equal(result.lastAgent.name, "billing");
  assert.equal(refunds.length, 1);
});

await step("a step of the AI SDK has tools of its own", async () => {
  const provider = createOpenAI({ baseURL, apiKey: "none" });
  for (const model of [provider.chat("default"), provider.responses("default")]) {
    const called = [];
    const named = (name) => ({ description: name, inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => `${called.push(name)}` });
    await generateText({
      model,
      prompt: "[call=search {}] [tokens=2] x",
      tools: { search: named("search"), publish: named("publish") },
      stopWhen: ({ steps }) => steps.length === 3,
      prepareStep: ({ stepNumber }) => (stepNumber === 1 ? { activeTools: ["publish"], toolChoice: "required" } : { activeTools: ["search"] }),
    });
    assert.deepEqual(called, ["search", "publish"]);
  }
});

await step("the provider of the AI SDK continues a conversation", async () => {
  const provider = createOpenAI({ baseURL, apiKey: "none" });
  const first = await generateText({ model: provider.responses("default"), prompt: "[tokens=2] one" });
  const messages = [{ role: "user", content: "[tokens=2] one" }, ...first.response.messages, { role: "user", content: "[tokens=4] two" }];
  const second = streamText({ model: provider.responses("default"), messages });
  let text = "";
  for await (const delta of second.textStream) text += delta;
  assert.ok(text.length > 0);
  const chat = await generateText({ model: provider.chat("default"), prompt: "[tokens=2] one" });
  assert.ok(chat.text.length > 0);
});

await step("LangChain streams", async () => {
  for (const useResponsesApi of [true, false]) {
    const model = new ChatOpenAI({ model: "default", apiKey: "none", configuration: { baseURL }, useResponsesApi, maxRetries: 0 });
    let text = "";
    for await (const chunk of await model.stream("[tokens=4] x")) text += chunk.text;
    assert.ok(text.length > 0);
  }
});

console.log(JSON.stringify({ end: steps }));
