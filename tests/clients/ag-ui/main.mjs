// Runs an agent with AG-UI's client: main.mjs BASE {"resumable": …, "silence": …, "thread": …, "path": …, "steps": […]}. A step says a text, answers
// the interrupts, returns the result of a tool of the front end, or connects to the thread with an empty client. Before it says a text,
// it keeps only the first messages, or begins with given ones.
import { HttpAgent } from "@ag-ui/client";
import { ResumableHttpAgent } from "holdfast-ag-ui";

const [base, parameters] = process.argv.slice(2);
const { resumable, silence, thread, path = "/ag-ui", tools = [], steps } = JSON.parse(parameters);
const report = (line) => console.log(JSON.stringify(line));

const Agent = resumable ? ResumableHttpAgent : HttpAgent;
const begin = () => Object.assign(new Agent({ url: `${base}${path}`, threadId: thread }), { silence });
const subscriber = { onEvent: ({ event }) => report({ got: event }) };
let agent = begin();

function answer(payload) {
  const answers = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload }));
  return agent.runAgent({ tools, resume: answers }, subscriber);
}

for (const [number, step] of steps.entries()) {
  if (step.keep !== undefined) agent.setMessages(agent.messages.slice(0, step.keep));
  if (step.given !== undefined) agent.setMessages(step.given);
  if (step.say !== undefined) {
    agent.addMessage({ id: `${thread}-${number}`, role: "user", content: step.say });
    await agent.runAgent({ runId: step.runId, tools }, subscriber);
  } else if (step.answer !== undefined) {
    await answer(step.answer);
  } else if (step.result !== undefined) {
    const { id } = agent.messages.flatMap(({ toolCalls = [] }) => toolCalls).at(-1);
    agent.addMessage({ id: `${thread}-${number}`, role: "tool", toolCallId: id, content: step.result });
    await agent.runAgent({ tools }, subscriber);
  } else {
    agent = begin();
    await agent.connectAgent({}, subscriber).catch(({ message }) => report({ got: { refused: message } }));
  }
  const { messages, state, pendingInterrupts } = agent;
  report({ got: { step: number, messages, state, interrupts: pendingInterrupts } });
}
report({ end: agent.messages });
