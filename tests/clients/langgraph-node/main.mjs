// Uses LangGraph's SDK: main.mjs BASE {"sdk": …, "thread": …, "steps": [{"do": …}, …]}. Reports each frame, and the result of each step.

import { readFile, rm, writeFile } from "node:fs/promises";

const [base, parameters] = process.argv.slice(2);
const { sdk = "@langchain/langgraph-sdk", thread, assistant = "agent", page, example, steps } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

if (example) {
  const source = await readFile(new URL("./example.mjs", import.meta.url), "utf8");
  const copy = new URL(`./example-${process.pid}.mjs`, import.meta.url);
  await writeFile(copy, source.replaceAll("http://127.0.0.1:8080", base));
  console.log = (...values) => process.stdout.write(`${JSON.stringify({ got: values.map(String).join(" ") })}\n`);
  await import(copy).finally(() => rm(copy));
  process.stdout.write(`${JSON.stringify({ end: null })}\n`);
  process.exit();
}
if (page) {
  // The page needs a DOM before React.
  const { show } = await import("./page.mjs");
  report({ end: await show({ apiUrl: `${base}/langgraph`, assistant, page, report }) });
  process.exit();
}

const { Client } = await import(sdk);
const client = new Client({ apiUrl: `${base}/langgraph`, apiKey: null });
let runId;

const created = { onRunCreated: ({ run_id }) => (runId = run_id) };
const human = (text, id) => ({ messages: [{ type: "human", content: text, id }] });
const modes = ["values", "messages-tuple", "updates", "custom", "tasks", "tools"];

async function each(frames) {
  for await (const { id, event, data } of frames) report({ got: { id, event, data } });
}

const actions = {
  create: (options) => client.threads.create({ threadId: thread, ...options }),
  stream: ({ say, id, ...options }) =>
    each(client.runs.stream(thread, assistant, { input: human(say, id), streamMode: modes, ...created, ...options })),
  resume: ({ value, ...options }) =>
    each(client.runs.stream(thread, assistant, { command: { resume: value }, streamMode: modes, ...created, ...options })),
  results: ({ messages }) =>
    each(client.runs.stream(thread, assistant, { input: { messages }, streamMode: modes, ...created })),
  stateless: ({ say }) => each(client.runs.stream(null, assistant, { input: human(say), streamMode: modes })),
  joinStream: (options) => each(client.runs.joinStream(thread, runId, options)),
  start: ({ say, ...options }) => client.runs.create(thread, assistant, { input: human(say), ...created, ...options }),
  wait: ({ say, ...options }) => client.runs.wait(thread, assistant, { input: human(say), raiseError: false, ...options }),
  join: () => client.runs.join(thread, runId),
  cancel: ({ wait, action }) => client.runs.cancel(thread, runId, wait, action),
  cancelMany: (options) => client.runs.cancelMany({ threadId: thread, runIds: [runId], ...options }),
  again: () => client.runs.wait(thread, assistant, { input: null, raiseError: false }),
  run: () => client.runs.get(thread, runId),
  runs: (options) => client.runs.list(thread, options),
  read: () => client.threads.get(thread),
  change: (options) => client.threads.update(thread, options),
  search: (options) => client.threads.search(options),
  count: (options) => client.threads.count(options),
  copy: () => client.threads.copy(thread),
  state: ({ checkpoint } = {}) => client.threads.getState(thread, checkpoint),
  update: (options) => client.threads.updateState(thread, options),
  patch: ({ metadata }) => client.threads.patchState(thread, metadata),
  history: (options) => client.threads.getHistory(thread, options),
  remove: () => client.threads.delete(thread),
  assistants: (options) => client.assistants.search(options),
  graph: () => client.assistants.getGraph(assistant),
};

let result;
for (const [number, { do: action, ...options }] of steps.entries()) {
  try {
    result = (await actions[action](options)) ?? null;
  } catch (error) {
    result = { failed: error.status ?? String(error) };
  }
  report({ got: { step: number, runId, result } });
}
report({ end: result });
