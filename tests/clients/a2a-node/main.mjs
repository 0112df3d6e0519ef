// Calls an agent with A2A's client: main.mjs BASE {"path": "/a2a", "legacy": false, "steps": […]}. A step streams a text (up to a cut),
// sends one, decides, subscribes, reads, lists or cancels. The program keeps the task as a client shows it.
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from "@a2a-js/sdk/client";

const [base, parameters] = process.argv.slice(2);
const { path, legacy = false, steps } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const legacyCompat = { enabled: legacy };
const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ legacyCompat })],
  cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
});
const factory = new ClientFactory(options);
const address = `${base}${path}/.well-known/agent-card.json`;
let client;
if (legacy) {
  const card = await (await fetch(address)).json();
  card.supportedInterfaces = card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === "0.3");
  client = await factory.createFromAgentCard(card);
} else {
  client = await factory.createFromUrl(address, "");
}

const shown = { id: undefined, context: undefined, state: undefined, text: "", asks: [] };

function textOf(parts) {
  return parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");
}

function showStatus({ state, message }) {
  shown.state = state;
  const parts = message?.parts ?? [];
  shown.asks = parts.filter(({ content }) => content?.$case === "data").map(({ content }) => content.value);
}

function show({ payload }) {
  const { $case: kind, value } = payload;
  if (kind === "task") {
    Object.assign(shown, { id: value.id, context: value.contextId, text: textOf(value.artifacts.flatMap(({ parts }) => parts)) });
    showStatus(value.status);
  } else if (kind === "statusUpdate") {
    showStatus(value.status);
  } else {
    shown.text = (value.append ? shown.text : "") + textOf(value.artifact.parts);
  }
  report({ got: { kind, event: value.metadata?.event, state: shown.state } });
}

function request(number, part, more = {}) {
  const { taskId = "", contextId = "" } = more;
  const messageId = more.messageId ?? `${shown.context ?? crypto.randomUUID()}-${number}`;
  const message = { messageId, contextId, taskId, role: 1, parts: [part], extensions: [], referenceTaskIds: [], metadata: undefined };
  return { tenant: "", message, configuration: undefined, metadata: undefined };
}

const part = (kind, value) => ({ content: { $case: kind, value }, metadata: undefined, filename: "", mediaType: "" });

async function stream(updates, cut) {
  let texts = 0;
  for await (const update of updates) {
    show(update);
    texts += update.payload.$case === "artifactUpdate";
    if (texts === cut) {
      break;
    }
  }
}

async function run(number, step) {
  if (step.stream !== undefined) {
    await stream(client.sendMessageStream(request(number, part("text", step.stream), step)), step.cut);
  } else if (step.send !== undefined) {
    show({ payload: { $case: "task", value: await client.sendMessage(request(number, part("text", step.send), step)) } });
  } else if (step.decide !== undefined) {
    await stream(client.sendMessageStream(request(number, part("data", step.decide), { taskId: shown.id })));
  } else if (step.subscribe) {
    await stream(client.resubscribeTask({ tenant: "", id: shown.id }), step.cut);
  } else if (step.get) {
    show({ payload: { $case: "task", value: await client.getTask({ tenant: "", id: shown.id }) } });
  } else if (step.cancel) {
    show({ payload: { $case: "task", value: await client.cancelTask({ tenant: "", id: shown.id, metadata: undefined }) } });
  } else if (step.list) {
    const { tasks } = await client.listTasks({ tenant: "", contextId: shown.context, status: 0, pageToken: "" });
    report({ got: { listed: tasks.map(({ id }) => id) } });
  }
}

for (const [number, step] of steps.entries()) {
  let error;
  try {
    await run(number, step);
  } catch (failure) {
    error = `${failure.name}: ${failure.message}`;
  }
  report({ got: { step: number, ...shown, error } });
}
report({ end: shown });
